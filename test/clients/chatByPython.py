"""OpenAI's own client for Python, as it is, against a running Atrium: prints what it got, as one JSON object a line."""

import json
import os
import sys

import openai

client = openai.OpenAI(api_key=os.environ["KEY"], base_url=os.environ["URL"] + "/v1")
given = json.loads(sys.argv[1])
model = given["model"]


def show(name, value):
    print(json.dumps({"name": name, "value": value}), flush=True)


def user(content):
    return {"role": "user", "content": content}


show("models", [model.id for model in client.models.list()])

whole = client.chat.completions.create(model=model, messages=[user("Hello")])
show("whole", {"text": whole.choices[0].message.content, "usage": whole.usage.model_dump()})

text, finish, usage = "", [], None
for chunk in client.chat.completions.create(
    model=model, messages=[user(given["slow"])], stream=True, stream_options={"include_usage": True}
):
    usage = chunk.usage
    for choice in chunk.choices:
        text += choice.delta.content or ""
        finish += [choice.finish_reason] if choice.finish_reason else []
show("streamed", {"text": text, "finish": finish, "tokens": usage.total_tokens})

weather = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
messages = [user(given["weather"])]
asked = client.chat.completions.create(model=model, messages=messages, tools=[weather])
call = asked.choices[0].message.tool_calls[0]
messages.append(asked.choices[0].message)
messages.append({"role": "tool", "tool_call_id": call.id, "content": "Snow, says Python."})
told = client.chat.completions.create(model=model, messages=messages, tools=[weather])
show(
    "tools",
    {
        "asked": asked.choices[0].finish_reason,
        "arguments": json.loads(call.function.arguments),
        "text": told.choices[0].message.content,
        "another": asked.id != told.id,
    },
)

picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + given["picture"]}}
seen = client.chat.completions.create(
    model=model, messages=[user([{"type": "text", "text": "A picture from Python"}, picture])]
)
show("picture", seen.choices[0].finish_reason)

first = client.chat.completions.with_raw_response.create(
    model=model, messages=[user("First, says Python")], metadata={"thread_id": "python"}
)
second = client.chat.completions.with_raw_response.create(
    model=model, messages=[user("Second, says Python")], extra_headers={"x-thread-id": "python"}
)
show("threads", [first.headers["x-thread-id"], second.headers["x-thread-id"]])

errors = []
for wrong in ({"model": "gone"}, {"n": 2}):
    try:
        client.chat.completions.create(**{"model": model, "messages": [user("x")], **wrong})
    except openai.APIStatusError as error:
        errors.append([type(error).__name__, error.code, error.param])
show("errors", errors)
try:
    for _ in client.chat.completions.create(model=model, messages=[user(given["failing"])], stream=True):
        pass
except openai.APIError as error:
    show("failed", error.code)
