"""When two requests are the same but for names, and when they are not."""

import json
import random
import re
import string
import time
import uuid

import pytest

from rewind.match.call import understand
from rewind.match.facts import RunFacts
from rewind.match.outline import Outlines
from rewind.match.renaming import Renaming
from rewind.match.tokens import ALL_KINDS
from rewind.match.written_times import RunClock
from rewind.model.http import HttpRequest, RequestHead

THEN, NOW = 1_794_910_000.0, 1_795_169_200.0  # 17 and 20 November 2026, at 10:06 UTC
ID_1, ID_2 = "3b241101-e2bb-4255-8caf-4136c566a962", "f47ac10b-58cc-4372-a567-0e02b2c3d479"


def facts(began, *, folder="/work/a", given="", **names) -> RunFacts:
    return RunFacts(
        clock=RunClock(began=began, until=lambda: began + 20),
        folders={"folder": folder, "home": "/home/ada", "temp": "/tmp"},
        names={"user": "ada", **names},
        given=given,
    )


def renaming(*, then=None, now=None, **options) -> Renaming:
    return Renaming(then or facts(THEN), now or facts(NOW, folder="/elsewhere/b"), **options)


def call(text, *, result=None, **fields):
    messages = [{"role": "system", "content": text}, {"role": "user", "content": "go on"}]
    if result is not None:
        messages.append({"role": "tool", "tool_call_id": "call_1", "content": result})
    body = json.dumps({"model": "gpt-4o", "messages": messages, **fields}).encode()
    head = RequestHead(
        method="POST",
        scheme="https",
        host="api.openai.com",
        port=443,
        target="/v1/chat/completions",
        headers=(("content-type", "application/json"),),
    )
    return understand(HttpRequest(head=head, body=body))


def same(recorded, asked, names=None, **options):
    return (names or renaming(**options)).trial(call(recorded), call(asked)) is not None


def at(began, form, seconds=5.0):
    return time.strftime(form, time.gmtime(began + seconds))


@pytest.mark.parametrize(
    ("command", "is_name"),
    [
        ("deploy.py staging", False),
        ("deploy.py --branch=staging now", False),
        ("deploy.py 'Roll out to staging.'", False),
        ("deploy.py staging.toml", True),
        ("/srv/staging/deploy.py", True),
        ("deploy.py pre-staging", True),
        ("deploy.py", True),
    ],
)
def test_a_name_of_the_run_that_the_user_wrote_is_input(command, is_name):
    then = facts(THEN, branch="staging", given=command)
    now = facts(NOW, branch="production", given=command.replace("staging", "production"))
    assert same("Deploy to staging.", "Deploy to production.", renaming(then=then, now=now)) is is_name


TIMES = [
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d",
    "%A, %B %d, %Y",
    "%d %B %Y",
    "%a, %d %b %Y %H:%M:%S GMT",
    "%a %b %d %H:%M:%S %Y",
    "%m/%d/%Y, %I:%M:%S %p",
    "%d.%m.%Y",
    "%H:%M:%S",
    "%Y%m%dT%H%M%SZ",
    "%Y-%m-%dT%H-%M-%S",
    "%b %d %H:%M",
]


@pytest.mark.parametrize("form", TIMES)
def test_a_clock_that_both_runs_read_is_a_name(form):
    assert same(f"It is {at(THEN, form)}. Answer.", f"It is {at(NOW, form)}. Answer.")


@pytest.mark.parametrize("factor", [1, 1_000, 1_000_000])
def test_seconds_since_1970_that_both_runs_read_are_a_name(factor):
    assert same(f"now={int((THEN + 3) * factor)}", f"now={int((NOW + 4) * factor)}")
    assert renaming().trial(call("x", at=int((THEN + 3) * factor)), call("x", at=int((NOW + 4) * factor)))


@pytest.mark.parametrize("form", TIMES)
def test_a_date_of_no_clock_is_text(form):
    month = 30 * 86400
    assert not same(f"Book {at(THEN + month, form)}.", f"Book {at(NOW + month + 3601, form)}.")
    assert not same(f"Book {at(THEN, form)}.", f"Book {at(NOW + month + 3601, form)}.")
    assert not same(f"Book {at(THEN + month, form)}.", f"Book {at(NOW + 3601, form)}.")


IDS = [
    (ID_1, ID_2),
    (ID_1.replace("-", ""), ID_2.replace("-", "")),
    ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"),
    ("call_8Hf2kLw0aQzX1bV7", "call_P3rt0kW9xZq7Lm2N"),
    ("toolu_01A09q90qw90lq917835lq9", "toolu_01D7FLrfh4GYq7yT1ULFeyMV"),
    ("agentId: a6e4b1c", "agentId: b7f05d2"),
    ("4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"),
    ("V1StGXR8_Z5jdHi6B-myT", "q7Lm2NxZ9w-P3rt0kWaB1c"),
    ("/tmp/tmpab12cd_x/out.txt", "/tmp/tmpzz93k1_q/out.txt"),
    ("<Agent object at 0x7f3a2b9c1d40>", "<Agent object at 0x7ffe01aa8c10>"),
    ("http://127.0.0.1:43121/mcp", "http://127.0.0.1:51873/mcp"),
    ("/work/a/notes.md", "/elsewhere/b/notes.md"),
    ("file:///work/a", "file:///elsewhere/b"),
    ("-work-a", "-elsewhere-b"),
    ("x-anthropic-billing-header: cc_version=2; cch=a457a;", "x-anthropic-billing-header: cc_version=2; cch=01bcf;"),
]


@pytest.mark.parametrize(("then", "now"), IDS)
def test_what_was_drawn_and_facts_of_the_run_are_names(then, now):
    assert same(f"This is {then}: go.", f"This is {now}: go.")
    assert same(then, then)


DRAWN = {
    "uuid7": "01a1e5{2h}-{4h}-7{3h}-9{3h}-{12h}",
    "cuid": "c{24b}",
    "cuid2": "k{23b}",
    "xid": "d4{18b}",
    "ksuid": "{27c}",
    "nanoid": "{21c}",
    "ObjectId": "6919{20h}",
    "short uuid": "{22c}",
    "traceparent": "00-{32h}-{16h}-01",
    "LangChain": "lc_run--{8h}-{4h}-4{3h}-a{3h}-{12h}-0",
    "pydantic-ai": "pyd_ai_{32h}",
    "AI SDK": "aitxt-{24c}",
    "OpenAI": "call_{24c}",
    "Responses": "resp_{48h}",
    "Anthropic": "toolu_01{22c}",
    "Bedrock": "tooluse_{9c}-{12c}",
    "vLLM": "chatcmpl-tool-{32h}",
    "Claude Code": "agentId: a{16h}",
    "mkstemp": "/tmp/tmp{8b}/x",
    "mktemp": "/tmp/tmp.{10c}",
    "docker": "{64h}",
}
"""Ids of frameworks: ``h`` is hexadecimal, ``b`` small letters and digits, ``c`` capitals too."""
_SIGNS = {
    "h": "0123456789abcdef",
    "b": string.digits + string.ascii_lowercase,
    "c": string.digits + string.ascii_letters,
}


@pytest.mark.parametrize("form", DRAWN.values(), ids=DRAWN)
def test_ids_of_frameworks_are_known(form):
    dice = random.Random(form)

    def drawn() -> str:
        return re.sub(r"{(\d+)(\w)}", lambda part: "".join(dice.choices(_SIGNS[part[2]], k=int(part[1]))), form)

    known = sum(same(f"This is {drawn()}: go.", f"This is {drawn()}: go.") for _ in range(40))
    assert known >= 32, "what looks like a word by chance is a word"


LOOK_ALIKES = [
    ("order 66", "order 67"),
    ("order #20260001", "order #20260002"),
    ("invoice INV-2026-0001", "invoice INV-2026-0002"),
    ("invoice_202600011", "invoice_202600012"),
    ("SKU-12345678", "SKU-12345679"),
    ("version 1.2.3", "version 1.2.4"),
    ("python 3.11.7", "python 3.12.0"),
    ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20"),
    ("claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929"),
    ("+49 30 1234567", "+49 30 1234568"),
    ("+1 (555) 010-9999", "+1 (555) 010-9998"),
    ("4155550100", "4155550101"),
    ("2026-12-24", "2026-12-25"),
    ("December 24, 2026", "December 25, 2026"),
    ("24.12.2026", "25.12.2026"),
    ("born 1990-01-01", "born 1991-01-01"),
    ("valid until 2027-01-01", "valid until 2028-01-01"),
    ("meet at 14:30", "meet at 15:30"),
    ("28 days", "24 days"),
    ("2 weeks", "3 weeks"),
    ("30 minutes", "45 minutes"),
    ("wait 5 s", "wait 6 s"),
    ("timeout 250 ms", "timeout 300 ms"),
    ("$19.99", "$29.99"),
    ("19.99 EUR", "29.99 EUR"),
    ("1,204 tokens", "1,205 tokens"),
    ("42 %", "43 %"),
    ("0.31", "0.52"),
    ("temperature 0.7", "temperature 0.8"),
    ("table A7", "table A8"),
    ("flight LH1234", "flight LH1235"),
    ("seat 12A", "seat 12B"),
    ("gate B12", "gate B13"),
    ("zip 10115", "zip 10117"),
    ("room 101", "room 102"),
    ("iPhone15Pro256GB", "iPhone16Pro512GB"),
    ("plate B-AB 1234", "plate B-AB 1235"),
    ("IBAN DE89370400440532013000", "IBAN DE89370400440532013001"),
    ("card 4111111111111111", "card 4111111111111112"),
    ("isbn 9783161484100", "isbn 9783161484101"),
    ("192.168.0.1", "192.168.0.2"),
    ("http://localhost:8080", "http://localhost:9090"),
    ("port 5432", "port 5433"),
    ("sha256:" + "ab12" * 16, "sha256:" + "cd34" * 16),
    ("md5 d41d8cd98f00b204e9800998ecf8427e", "md5 9e107d9d372bb6826bd81d3542a419d6"),
    ("commit 8cf85b94c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6", "commit ce9c33c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7"),
    ("digest: 9e107d9d372bb6826bd81d3542a419d6", "digest: d41d8cd98f00b204e9800998ecf8427e"),
    ("refund", "return"),
    ("yes", "no"),
    ("Alice", "Bob"),
    ("Monday", "Tuesday"),
    ("every Monday", "every Friday"),
    ("in March", "in April"),
    ("Berlin", "Munich"),
    ("user_name_one", "user_name_two"),
    ("customer-alpha-one", "customer-gamma-two"),
    ("read_file", "write_file"),
    ("/etc/hosts", "/etc/passwd"),
    ("/work/a1/notes.md", "/elsewhere/b1/notes.md"),
    ("/work/a.txt", "/elsewhere/b.txt"),
    ("src/main.py:12", "src/main.py:13"),
    ("HTTP 404", "HTTP 500"),
    ("exit code 0", "exit code 1"),
    ("3 tests passed", "4 tests passed"),
    ("ISSUE-1234", "ISSUE-1235"),
    ("ticket ABC-98765", "ticket ABC-98766"),
    ("order_id: 1234567", "order_id: 1234568"),
    ("customerId: a1b2c3d", "customerId: d4e5f6a"),
    ("rgb(12, 34, 56)", "rgb(12, 34, 57)"),
    ("#ff8800", "#ff8811"),
    ("lat 52.5200", "lat 52.5201"),
    ("WKN A1B2C3", "WKN D4E5F6"),
    ("device_iPhone15Pro256", "device_iPhone16Pro512"),
    ("sku_ABC12DEF34", "sku_ABC12DEF35"),
    ("part-7F3A2B9C", "part-8A4B3C0D"),
    ("client_id: 7f3a2b1", "client_id: 8a4b3c0"),
    ("Q3 2026", "Q4 2026"),
    ("year 2026", "year 2027"),
    ("agent-gpt4omini", "agent-gpt4turbo"),
    ("chain-llama3instruct", "chain-llama2instruct"),
    ("event-blackfriday2026", "event-cybermonday2026"),
    ("task-deploy2prod", "task-deploy2test"),
    ("task_deploy2prod", "task_deploy2test"),
    ("session-q32026keynote", "session-q42026keynote"),
    ("worker-us2east1a", "worker-us2west1b"),
    ("node-18alpine3", "node-20alpine3"),
    ("process-iso9001audit", "process-iso2700audit"),
    ("message-hello123", "message-world123"),
    ("agent_id: agent007", "agent_id: agent008"),
    ("worker_id=worker12", "worker_id=worker13"),
    ("event_id: summit2026", "event_id: summit2027"),
    ("task id: deploy2prod", "task id: deploy2test"),
    ("node_id: us2east", "node_id: us2west"),
    ("request id REQ2024A", "request id REQ2024B"),
    ("step_id: step12", "step_id: step13"),
    ("stream id channel4", "stream id channel5"),
    ("session_id: monday9am", "session_id: friday9am"),
    ("/tmp/reports/monthly-january", "/tmp/reports/monthly-october"),
    ("/tmp/data/order-123456", "/tmp/data/order-123457"),
    ("/tmp/x/report-final1", "/tmp/x/report-final2"),
    ("/tmp/Q3Report", "/tmp/Q4Report"),
    ("tmp_backup1", "tmp_backup2"),
    ("tmpfile_new", "tmpfile_old"),
    ("tmp_invoice", "tmp_voucher"),
    ("etag-9e107d9d372bb6826bd81d3542a419d6", "etag-d41d8cd98f00b204e9800998ecf8427e"),
    ("hash_9e107d9d372bb6826bd81d3542a419d6", "hash_d41d8cd98f00b204e9800998ecf8427e"),
    ("sha256-47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=", "sha256-n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg="),
    ('ETag: W/"9e107d9d372bb6826bd81d3542a419d6"', 'ETag: W/"d41d8cd98f00b204e9800998ecf8427e"'),
    ("revision 9e107d9d372b", "revision d41d8cd98f00"),
    ("rev=9e107d9d372bb6826bd81d3542a419d6aaaabbbb", "rev=d41d8cd98f00b204e9800998ecf8427eccccdddd"),
    ("HEAD is now at 9e107d9d372b", "HEAD is now at d41d8cd98f00"),
    ("parent 9e107d9d372bb6826bd81d3542a419d6aaaabbbb", "parent d41d8cd98f00b204e9800998ecf8427eccccdddd"),
    ("image@sha256:9e107d9d372b", "image@sha256:d41d8cd98f00"),
    (
        "git+https://x/y@9e107d9d372bb6826bd81d3542a419d6aaaabbbb",
        "git+https://x/y@d41d8cd98f00b204e9800998ecf8427eccccdddd",
    ),
    ("52.520008, 13.404954", "52.520009, 13.404954"),
    ("geo:52.5200,13.4050", "geo:52.5201,13.4050"),
    ("plus code 9F4MGCC3+2V", "plus code 9F4MGCC3+2W"),
    ("what3words filled.count.soap", "what3words index.home.raft"),
    ("00:1A:2B:3C:4D:5E", "00:1A:2B:3C:4D:5F"),
    ("00-1A-2B-3C-4D-5E", "00-1A-2B-3C-4D-5F"),
    ("001A2B3C4D5E", "001A2B3C4D5F"),
    ("2001:db8::ff00:42:8329", "2001:db8::ff00:42:8330"),
    ("fe80::1ff:fe23:4567:890a", "fe80::1ff:fe23:4567:890b"),
    ("0xff8800", "0xff8811"),
    ("#ff8800aa", "#ff8811bb"),
    ("SAVE20-A7B8C9D0", "SAVE20-A7B8C9D1"),
    ("coupon-X7K2M9Q4W8E3R5T1", "coupon-Z7K2M9Q4W8E3R5T2"),
    ("A1B2C-D3E4F-G5H6I-J7K8L", "A1B2C-D3E4F-G5H6I-J7K8M"),
    ("licence-7F3A2B9C1D4E5F60", "licence-8F3A2B9C1D4E5F61"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkxIn0"),
    ("cus_NffrFeUfNV2Hib", "cus_NffrFeUfNV2Hic"),
    ("sub_1MowQVLkdIwHu7ixeRlqHVzs", "sub_2MowQVLkdIwHu7ixeRlqHVzt"),
    ("price_1MoBy5LkdIwHu7ixZhnattbh", "price_2MoBy5LkdIwHu7ixZhnattbi"),
    ("order_3MtwBwLkdIwHu7ix28a3tqPa", "order_4MtwBwLkdIwHu7ix28a3tqPb"),
    ("acct_1032D82eZvKYlo2C", "acct_1032D82eZvKYlo2D"),
    ("user_2abcDEF34ghiJKL56mnoPQR", "user_3abcDEF34ghiJKL56mnoPQS"),
    ("prod_NWjs8kKbJWmuuc12AbX9", "prod_NWjs8kKbJWmuuc12AbX8"),
    ("backup-2026-12-24.tar.gz", "backup-2026-12-25.tar.gz"),
    ("report_20261224.pdf", "report_20261225.pdf"),
    ("IMG_20261224_101530.jpg", "IMG_20261225_101530.jpg"),
    ("from 10:00 to 11:00", "from 10:00 to 12:00"),
    ("09:00-17:00", "09:00-18:00"),
    ("UTC+1", "UTC+2"),
    ("Europe/Berlin", "Europe/London"),
    ("GMT+0100", "GMT+0200"),
    ("10 kg", "12 kg"),
    ("5 GB", "6 GB"),
    ("100 km/h", "120 km/h"),
    ("3.5 hours", "4.5 hours"),
    ("1.5 m", "1.6 m"),
    ("20 s", "30 s"),
    ("100 m", "200 m"),
    ("16 ns", "20 ns"),
    ("+4930123456789", "+4930123456780"),
    ("tel:+15550109999", "tel:+15550109998"),
    ("llama-3-70b-instruct", "llama-3-8b-instruct"),
    ("o3-mini-2025-01-31", "o4-mini-2025-04-16"),
    ("Qwen2-72B-Instruct-AWQ-Int4", "Qwen2-7B-Instruct-GPTQ-Int8"),
    ("text-embedding-3-small", "text-embedding-3-large"),
    ("flag_new_checkout_v2", "flag_new_checkout_v3"),
    ("enable-dark-mode2", "enable-dark-mode3"),
    ("ff_checkout_2026q4a", "ff_checkout_2026q4b"),
    ("exp-2026Q4pricingA", "exp-2026Q4pricingB"),
    ("v1.2.3-rc1+build5", "v1.2.3-rc2+build5"),
    ("1.0.0-alpha1", "1.0.0-alpha2"),
    ("node:20.11.1", "node:22.1.0"),
    ("pid 12.5", "pid 12.7"),
    ("BIC DEUTDEFF500", "BIC DEUTDEFF501"),
    ("VIN 1HGCM82633A004352", "VIN 1HGCM82633A004353"),
    ("EAN 4006381333931", "EAN 4006381333932"),
    ("DOI 10.1000/xyz123abc456", "DOI 10.1000/xyz123abc457"),
    ("arXiv:2401.12345", "arXiv:2401.12346"),
    ("CVE-2026-12345", "CVE-2026-12346"),
    ("RFC 7231", "RFC 7232"),
    ("ASIN B08N5WRWNW", "ASIN B08N5WRWN1"),
    ("tracking 1Z999AA10123456784", "tracking 1Z999AA10123456785"),
    ("patent US20260012345A1", "patent US20260012346A1"),
    ("gene ENSG00000139618", "gene ENSG00000139619"),
    ("chr7:55019017", "chr7:55019018"),
    ("ACGTACGTACGTACGT", "ACGTACGTACGTACGA"),
    ("1700000000", "1800000000"),
    ("account 1234567890123", "account 1234567890124"),
    ("block 0x1b4", "block 0x1b5"),
    ("wallet 0x52908400098527886E0F7030069857D2E4169EE7", "wallet 0x8617E340B3D01FA5F11F306F4090FD50E238070D"),
    ("bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
    ("S3 key users/42/avatar.png", "S3 key users/43/avatar.png"),
    ("arn:aws:iam::123456789012:role/x", "arn:aws:iam::123456789013:role/x"),
    ("i-0abcd1234ef567890", "i-0abcd1234ef567891"),
    ("subnet-0bb1c79de3EXAMPLE", "subnet-0bb1c79de4EXAMPLE"),
    ("ami-0abcdef1234567890", "ami-0abcdef1234567891"),
    ("vol-0abc123def4567890", "vol-1abc123def4567891"),
    ("pod web-7d4b9c6f5-x2k8p", "pod web-7d4b9c6f5-x2k8q"),
    ("serial C02XK0ABJG5H", "serial C02XK0ABJG5J"),
    ("part number 7F3A-2B9C", "part number 8A4B-3C0D"),
    ("chunk size: 4096", "chunk size: 8192"),
    ("original token count", "original token sum"),
    ("duration 30 minutes", "duration 45 minutes"),
    ("took 5 tablets", "took 6 tablets"),
    ("runtime 2 hours", "runtime 3 hours"),
    ("pid controller 12", "pid controller 13"),
    ("PIDs 100 to 200", "PIDs 100 to 300"),
    ("run id 12345678", "run id 12345679"),
    ("thread 4", "thread 5"),
    ("localhost:5432", "localhost:5433"),
    ("127.0.0.1:8000", "127.0.0.1:8001"),
    ("GetOrderByIdV2FromDb", "GetOrderByKeyV2FromDb"),
    ("GetOrderByIdV2Response3", "SetUserByNameV4Request5"),
    ("deployment2026q4staging1", "deployment2027q1staging2"),
]


@pytest.mark.parametrize(("then", "now"), LOOK_ALIKES)
def test_what_means_something_is_no_name(then, now):
    for form in ("{}", "Please look at {} and go on.", '{{"value": "{}"}}'):
        assert not same(form.format(then), form.format(now)), form
        assert not same(form.format(now), form.format(then)), form


def test_a_booking_for_tomorrow_is_none_for_today():
    again = facts(THEN + 600, folder="/elsewhere/b")
    for form in ("%Y-%m-%d", "%A, %B %d, %Y", "%d.%m.%Y"):
        for days in (-1, 1):
            assert not same(f"Book {at(THEN, form)}.", f"Book {at(THEN + days * 86400, form)}.", now=again)
    assert not same(f"Book {at(THEN, '%Y-%m-%d')}.", f"Book {at(NOW + 86400, '%Y-%m-%d')}.")
    assert same(f"It is {at(THEN, '%Y-%m-%d')}.", f"It is {at(NOW, '%Y-%m-%d')}.")


def test_the_day_may_be_that_of_another_zone_if_it_is_so_in_both_runs():
    tomorrow = 86400  # 10:06 in UTC is 00:06 of the next day in Kiribati
    assert same(f"It is {at(THEN + tomorrow, '%Y-%m-%d')}.", f"It is {at(NOW + tomorrow, '%Y-%m-%d')}.")
    assert not same(f"It is {at(THEN + tomorrow, '%Y-%m-%d')}.", f"It is {at(NOW, '%Y-%m-%d')}.")
    assert not same(f"It is {at(THEN, '%H:%M:%S')}.", f"It is {at(NOW, '%H:%M:%SZ')}.")


LOOK_ALIKES_IN_RESULTS = [
    ("https://shop.example/product?pid=4711", "https://shop.example/product?pid=4712"),
    ("Patient PID 4711", "Patient PID 4712"),
    ("2.5 m of cable", "3.5 m of cable"),
    ("Revenue 1.2 M", "Revenue 3.2 M"),
    ("trip duration: 7", "trip duration: 14"),
    ('{"duration": 7, "unit": "nights"}', '{"duration": 9, "unit": "nights"}'),
    ("runtime: 142", "runtime: 95"),
    ("the patient took 3 tablets", "the patient took 4 tablets"),
    ("there are 5 us citizens", "there are 7 us citizens"),
    ("Timeout is 30 s", "Timeout is 60 s"),
    ('"timeout_ms": 5000', '"timeout_ms": 6000'),
    ("/tmp/orders/order-A12b3C", "/tmp/orders/order-X98y7Z"),
    ("/tmp/invoice-2b7K9Q.pdf", "/tmp/invoice-7x1P4M.pdf"),
    ("9e107d9d372bb6826bd81d3542a419d6  a.txt", "d41d8cd98f00b204e9800998ecf8427e  a.txt"),
    ("task id: rev2b7", "task id: rev3b7"),
    ("node-id 10ab22", "node-id 10ab23"),
    ("in_1MtHbELkdIwHu7ixl4OzzPMv", "in_1NqV2Q3kdIwHu7ix8ZaTtYpB"),
    ("re_3MmlLrLkdIwHu7ix0uke3Ezy", "re_9XbqVtRkdIwHu7ix5pol8Qwe"),
    ("postgres at localhost:54320/prod", "postgres at localhost:54329/prod"),
    ("grpc on localhost:50051", "grpc on localhost:50052"),
]


@pytest.mark.parametrize(("then", "now"), LOOK_ALIKES_IN_RESULTS)
def test_what_means_something_is_no_name_in_a_result_either(then, now):
    assert renaming().trial(call("x", result=then), call("x", result=now)) is None
    assert not same(then, now)


def test_a_date_that_the_user_gave_is_input():
    recorded, asked = at(THEN, "%Y-%m-%d"), at(NOW, "%Y-%m-%d")
    given = facts(NOW, folder="/elsewhere/b", given=f"agent.py {asked}")
    assert renaming(now=given).trial(call(f"report of {recorded}"), call(f"report of {asked}")) is None
    assert same(f"report of {recorded}", f"report of {asked}")


def test_there_are_enough_look_alikes():
    assert len(LOOK_ALIKES) >= 60
    assert all(then != now for then, now in LOOK_ALIKES)


def test_an_id_that_the_user_gave_is_input():
    given = facts(NOW, folder="/elsewhere/b", given=f"agent.py --customer {ID_2}")
    assert not same(f"customer {ID_1}", f"customer {ID_2}", now=given)
    recorded = facts(THEN, given=f"agent.py --customer {ID_1}")
    assert not same(f"customer {ID_1}", f"customer {ID_2}", then=recorded)
    assert same(f"customer {ID_1}", f"customer {ID_2}")


def test_a_name_is_one_to_one_both_ways_from_the_first_request_to_the_last():
    names, other = renaming(), str(uuid.UUID(int=5))
    first = names.trial(call(f"session {ID_1}"), call(f"session {ID_2}"))
    assert first is not None
    names.keep(first, call(f"session {ID_2}"))
    assert same(f"session {ID_1}, again", f"session {ID_2}, again", names)
    assert not same(f"session {ID_1}", f"session {other}", names)
    assert not same(f"session {other}", f"session {ID_2}", names)
    assert not same(f"{ID_1} and {ID_1}", f"{ID_2} and {other}", renaming())
    assert not same(f"{ID_1} and {other}", f"{ID_2} and {ID_2}", renaming())


def test_an_id_that_was_asked_for_as_it_is_keeps_its_name():
    names = renaming()
    names.was_exact(call(f"session {ID_1}"))
    assert not same(f"session {ID_1}, again", f"session {ID_2}, again", names)


def test_no_part_of_an_id_that_the_user_gave_is_a_name():
    other = ID_1[:-12] + "0e02b2c3d479"
    given = facts(NOW, folder="/elsewhere/b", given=f"agent.py --customer {other}")
    assert not same(f"customer {ID_1}", f"customer {other}", now=given)
    assert same(f"customer {ID_1}", f"customer {other}")


def test_names_are_told_of_every_request_in_which_they_stand():
    names, recorded, asked = renaming(), call(f"session {ID_1}"), call(f"session {ID_2}")
    for _ in range(2):
        trial = names.trial(recorded, asked)
        assert trial is not None
        assert [(pair.then, pair.now) for pair in names.keep(trial, asked)] == [(ID_1, ID_2)]


def test_what_the_user_says_is_no_result_though_a_tool_says_it_too():
    names, result = renaming(), "timeout 300 ms in the settings"
    assert names.trial(call("timeout 250 ms", result=result), call("timeout 300 ms", result=result)) is None


HOSTILE = [
    "1" * 1_000_000,
    "a" * 1_000_000,
    "a1" * 500_000,
    "-" * 1_000_000,
    "/" * 1_000_000,
    "0x" * 500_000,
    "\\" * 1_000_000,
]


@pytest.mark.parametrize(
    "text", [*HOSTILE, " 1.", " 3 ms", " {id}", "(", "/tmp/a-", "run_id "], ids=lambda text: text[:7]
)
def test_a_hostile_request_is_refused_in_bounded_time(text):
    many = text if len(text) > 99 else "".join(text.format(id=uuid.UUID(int=n, version=4)) for n in range(20_000))
    more = text if len(text) > 99 else "".join(text.format(id=uuid.UUID(int=n << 70, version=4)) for n in range(20_000))
    began = time.process_time()
    recorded, asked = call("x" + many, result=many), call("y" + more, result=more)
    names = renaming()
    outlines = names.outlines()
    assert outlines.of(recorded) != outlines.of(call("refund it"))
    assert names.trial(recorded, asked) is None
    assert names.trial(call("x", result=many), call("x", result="y" + more)) is None
    names.was_exact(asked)
    assert time.process_time() - began < 20


def test_a_request_that_is_nested_deep_is_compared():
    then: object = ID_1
    now: object = ID_2
    for _ in range(190):
        then, now = [then], [now]
    names = renaming()
    assert names.trial(call("x", deep=then), call("x", deep=now)) is not None
    assert names.outlines().of(call("x", deep=then)) == names.outlines().of(call("x", deep=now))


AMOUNTS = [
    ("Runtime: 120 min", "Runtime: 135 min"),
    ("took 5 tablets", "took 6 tablets"),
    ("height 1.5 m", "height 1.6 m"),
    ("duration 30 days", "duration 45 days"),
    ("elapsed: 12", "elapsed: 13"),
]
LOGGED = [
    "%a %b %d %H:%M:%S UTC %Y",
    "-rw-r--r-- 1 ada ada 12 %b %d %H:%M notes.md",
    "-rw-r--r-- 1 ada ada 12 %Y-%m-%d %H:%M:%S.123456789 +0000 notes.md",
    '127.0.0.1 - - [%d/%b/%Y:%H:%M:%S +0000] "GET / HTTP/1.1" 200',
    "%Y-%m-%d %H:%M:%S,123 INFO start",
    "Date:   %a %b %d %H:%M:%S %Y +0000",
]


@pytest.mark.parametrize("form", LOGGED)
def test_times_as_programs_print_them_are_names(form):
    assert renaming().trial(call("x", result=at(THEN, form)), call("x", result=at(NOW, form, 7))) is not None


def test_how_long_a_tool_took_is_a_name_in_its_result_and_nowhere_else():
    names = renaming()
    results = [
        ("41 passed in 0.31s", "41 passed in 0.52s"),
        ("duration_ms: 254", "duration_ms: 1031"),
        ("3 ms", "4 ms"),
        ("== 41 passed in 71.31s (0:01:11) ==", "== 41 passed in 65.22s (0:01:05) =="),
        ("added 120 packages in 3s", "added 120 packages in 14s"),
        ("Duration  1.21s (transform 50ms, setup 0ms)", "Duration  950ms (transform 61ms, setup 0ms)"),
        ("ok  \texample.com/x\t0.003s", "ok  \texample.com/x\t0.012s"),
        ("real\t0m1.234s\nuser\t0m0.100s", "real\t0m0.934s\nuser\t0m0.080s"),
        ("time_total: 0.123456", "time_total: 0.234567"),
        ("icmp_seq=1 ttl=64 time=0.045 ms", "icmp_seq=1 ttl=64 time=0.051 ms"),
        ('"wall_time_seconds": 1e-05', '"wall_time_seconds": 0.2'),
    ]
    for then, now in results:
        assert names.trial(call("x", result=then), call("x", result=now)) is not None
        assert names.trial(call(then), call(now)) is None
    for then, now in [("41 passed", "42 passed"), ("28 days", "24 days"), ("2.5 kg", "2.6 kg"), *AMOUNTS]:
        assert names.trial(call("x", result=then), call("x", result=now)) is None


def test_in_fields_only_ids_that_are_a_whole_value_are_names():
    names = renaming(mode="fields")
    assert names.trial(call("x", session_id=ID_1), call("x", session_id=ID_2)) is not None
    assert not same(f"session {ID_1}", f"session {ID_2}", renaming(mode="fields"))
    assert not same(ID_1, ID_2, renaming(mode="fields")), "a message is no field for ids"
    assert not same("/tmp/tmpab12cd_x", "/tmp/tmpzz93k1_q", renaming(mode="fields"))
    assert same(f"It is {at(THEN, '%Y-%m-%d')}", f"It is {at(NOW, '%Y-%m-%d')}", renaming(mode="fields"))
    assert same("in /work/a", "in /elsewhere/b", renaming(mode="fields"))


def test_a_pattern_of_the_users_is_a_name():
    names = renaming(ignore_text=(r"build \d+",))
    assert same("this is build 12 of it", "this is build 345 of it", names)
    assert not same("this is batch 12", "this is batch 13", names)


def test_another_setting_another_number_of_messages_or_another_type_is_no_name():
    names = renaming()
    assert names.trial(call("x", temperature=0.1), call("x", temperature=0.2)) is None
    assert names.trial(call("x", n=1), call("x", n=True)) is None
    assert names.trial(call("x"), call("x", result="y")) is None
    assert names.trial(call("x", user=None), call("x", user="a")) is None


def test_what_is_printed_may_differ_in_times_durations_and_names():
    names = renaming()
    pairs = names.outputs("Duration 1.15 seconds in /work/a\n", "Duration 0.98 seconds in /elsewhere/b\n")
    assert pairs is not None
    assert [pair.kind for pair in pairs] == ["duration", "folder"]
    assert names.outputs("total 12\n", "total 13\n") is None


def test_an_output_may_break_its_lines_elsewhere_where_a_name_has_another_length():
    names = renaming(then=facts(THEN, folder="/work/first/harbour"), now=facts(NOW, folder="/elsewhere/north_light.2"))
    rule = "━" * 24
    long = f"{rule}\nI read /work/first/harbo\nur/note.txt: a title\n0.95 s in all\n{rule}\n"
    other = f"{rule}\nI read /elsewhere/north_\nlight.2/note.txt: a\ntitle\n0.11 s in all\n{rule}\n"
    found = names.outputs(long, other)
    assert found is not None
    assert [pair.kind for pair in found] == ["folder", "duration"]
    assert names.outputs(long, other.replace("a\ntitle", "no\ntitle")) is None
    assert names.outputs(long, long.replace("a title", "a\ntitle")) is None, "no name asked for another line break"
    framed = "╭────────────────────╮\n│ It is in           │\n│ {}{}│\n│ {}│\n╰────────────────────╯\n"
    short = framed.format("/work/first/harbou", " ", f"{'r: a name':19}")
    moved = framed.format("/elsewhere/north_l", " ", f"{'ight.2: a name':19}")
    assert names.outputs(short, moved) is not None


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("1\n2\n3\n", "1 2 3\n"),
        ("if x:\n    a()\nb()\n", "if x:\n    a()\n    b()\n"),
        ("one\n\ntwo\n", "one\ntwo\n"),
        ("one\ntwo\n", "one\n\n\ntwo\n"),
        ("total 1\n000 EUR\n", "total 1 000 EUR\n"),
        ("- one\n- two\n", "- one - two\n"),
    ],
)
def test_lines_that_somebody_wrote_stay_lines_where_a_name_has_another_length(then, now):
    rule = "=" * 60 + "\n"
    names = renaming()
    assert names.outputs(f"{rule}in /work/a ok\n{then}", f"{rule}in /elsewhere/b ok\n{then}") is not None
    assert names.outputs(f"{rule}in /work/a ok\n{then}", f"{rule}in /elsewhere/b ok\n{now}") is None


def test_a_folder_may_be_called_by_its_name_made_fit_for_a_file():
    names = renaming(then=facts(THEN, folder="/work/my old plan"), now=facts(NOW, folder="/else/Nord_Licht (2)"))
    assert same("in /home/ada/.gemini/tmp/my-old-plan/x", "in /home/ada/.gemini/tmp/nord-licht-2/x", names)
    assert same("in ~/.cache/my-old-plan", "in ~/.cache/Nord_Licht-2-", names)
    assert not same("in ~/.cache/my-old-plan", "in ~/.cache/nord-licht-3", names)


BREAKS = ["\n", "\t", r"\n", r"\t", r"\r\n", r"\\n", "\x1b[1;32m", r"\u001b[0m", r"\x1b[31m"]
"""What may stand before a token without a blank: line breaks of JSON within a text, and colours."""


@pytest.mark.parametrize("before", BREAKS, ids=ascii)
def test_a_token_may_stand_right_behind_a_line_break_or_a_colour(before):
    for then, now in [(ID_1, ID_2), ("/work/a", "/elsewhere/b"), ("tmp.4EJ16tCtFj", "tmp.4M6osUJTMz"), IDS[0]]:
        assert same(f"it is:{before}{then}{before}", f"it is:{before}{now}{before}")
        assert same(f'{{"output":"it{before}{then}"}}', f'{{"output":"it{before}{now}"}}')
    names = renaming()
    for then, now in [("pid=19971", "pid=20174"), ("0m0.011s", "0m0.015s")]:
        assert names.trial(call("x", result=f"a{before}{then}"), call("x", result=f"a{before}{now}")) is not None
    assert not same(f"it is:{before}order 66", f"it is:{before}order 67")
    assert not same(f"it is{before}{ID_1}", f"it is {ID_2}"), "the line break itself counts"


@pytest.mark.parametrize(("then", "now"), IDS)
def test_requests_that_are_the_same_but_for_names_share_their_outline(then, now):
    names = {"ada", "bob", "/work/my project", "/else", "/work/a", "/elsewhere/b", "-work-a", "-elsewhere-b"}
    outlines = Outlines(names, [re.compile("build [a-z]+")])
    assert outlines.of(call(f"This is {then}: go.")) == outlines.of(call(f"This is {now}: go."))
    assert outlines.of(call("It is ada here")) == outlines.of(call("It is bob here"))
    assert outlines.of(call("build one of it")) == outlines.of(call("build two of it"))
    assert outlines.of(call("in /work/my project now")) == outlines.of(call("in /else now"))
    zones = "12:00:00 GMT+0200 (Central European Summer Time)", "12:00:00 GMT+0100 (Central European Standard Time)"
    assert outlines.of(call(zones[0])) == outlines.of(call(zones[1]))
    assert outlines.of(call("refund it")) != outlines.of(call("return it"))


def test_a_message_of_a_web_socket_is_no_output():
    assert not renaming().values({"text": "timeout 250 ms"}, {"text": "timeout 300 ms"})
    assert renaming().values({"text": f"session {ID_1}"}, {"text": f"session {ID_2}"})


def test_every_kind_has_its_reason():
    assert all(kind.reason.endswith(".") for kind in ALL_KINDS)


def test_messages_of_a_websocket_may_differ_in_names():
    names = renaming()
    assert names.values({"type": "response.create", "session": ID_1}, {"type": "response.create", "session": ID_2})
    assert names.values({"session": ID_1, "n": 2}, {"session": ID_2, "n": 2})
    assert names.values({"session": ID_1}, {"session": str(uuid.UUID(int=7))}) is None
    assert names.values({"text": "refund"}, {"text": "return"}) is None
