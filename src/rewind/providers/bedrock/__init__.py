"""Amazon Bedrock: Converse and InvokeModel."""
