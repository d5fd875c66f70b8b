"""An answer while it comes: reads become the chunks that replay will send."""

from rewind.model.http import Chunk
from rewind.runs.step_writer import ChunkDraft


def test_each_read_of_a_counted_body_is_a_chunk() -> None:
    draft = ChunkDraft()
    draft.piece(10, 3, ends_chunk=True)
    draft.piece(25, 4, ends_chunk=True)
    assert draft.finish(30) == (Chunk(10, 3), Chunk(25, 4))
    assert (draft.size, draft.first_at) == (7, 10)


def test_a_transfer_chunk_that_came_in_pieces_is_one_chunk_at_the_time_of_its_end() -> None:
    draft = ChunkDraft()
    draft.piece(10, 3, ends_chunk=False)
    draft.piece(20, 4, ends_chunk=False)
    draft.piece(30, 0, ends_chunk=True)
    assert draft.finish(40) == (Chunk(30, 7),)
    assert draft.first_at == 10


def test_a_chunk_that_broke_off_counts_as_far_as_it_came() -> None:
    draft = ChunkDraft()
    draft.piece(10, 3, ends_chunk=True)
    draft.piece(20, 4, ends_chunk=False)
    assert draft.finish(50) == (Chunk(10, 3), Chunk(50, 4))
    assert draft.finish(60) == (Chunk(10, 3), Chunk(50, 4)), "asked again, nothing is counted twice"


def test_nothing_is_nothing() -> None:
    draft = ChunkDraft()
    draft.piece(10, 0, ends_chunk=True)
    assert draft.finish(20) == ()
    assert (draft.size, draft.first_at) == (0, None)
