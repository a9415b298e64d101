/** Atrium's address. */
export const baseUrl: string = import.meta.env.VITE_ATRIUM_URL ?? 'http://localhost:8080';

const key = 'atrium-session';

export function savedToken(): string | null {
  return sessionStorage.getItem(key);
}

/** Exchanges a one-time code for a session token. Throws with the server's message. */
export async function signIn(code: string): Promise<string> {
  const response = await fetch(`${baseUrl}/auth/exchange-code`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code: code.trim() }),
  });
  const answer = (await response.json()) as { sessionToken?: string; detail?: string };
  if (answer.sessionToken === undefined) throw new Error(answer.detail ?? 'The code could not be exchanged.');
  sessionStorage.setItem(key, answer.sessionToken);
  return answer.sessionToken;
}
