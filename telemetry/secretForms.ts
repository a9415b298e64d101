/** Shorter values are too common as plain text: replacing them would garble what people write. */
const minLength = 6;

/** The spellings in which a secret value would turn up: as it is, and as JSON, URLs and base64 write it. */
export function secretForms(value: string): string[] {
  const text = value.trim();
  if (text.length < minLength) return [];
  const inJson = JSON.stringify(text).slice(1, -1);
  // JSON is often a text in other JSON: a tool's arguments, a log line.
  const inJsonInJson = JSON.stringify(inJson).slice(1, -1);
  const forms = [text, inJson, inJsonInJson, Buffer.from(text, 'utf8').toString('base64')];
  // Only well-formed text has a form for URLs.
  if (text.isWellFormed()) forms.push(encodeURIComponent(text));
  return [...new Set(forms)];
}

/** What stands where a secret was. */
export const redacted = '[redacted]';
