// Talking to the server: plain answers, and a solve as a stream of events.

export async function get(path) {
  return answerOf(await fetch(path));
}

export async function post(path, body, signal) {
  return answerOf(await send(path, body, signal));
}

/** Call `on(kind, content)` for every server-sent event of the answer. */
export async function postForEvents(path, body, on, signal) {
  const response = await send(path, body, signal);
  if (!response.ok) await answerOf(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const text of events) {
      const match = /^event: (\w+)\ndata: (.*)$/.exec(text);
      if (match) on(match[1], JSON.parse(match[2]));
    }
  }
}

function send(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

async function answerOf(response) {
  const content = await response.json().catch(() => ({}));
  if (response.ok) return content;
  throw new Error(content.error ?? `the server answered ${response.status}`);
}

/** Bits of a sample, packed most significant first; read them with `bit`. */
export function unpack(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

export function bit(bytes, index) {
  return (bytes[index >> 3] >> (7 - (index & 7))) & 1;
}
