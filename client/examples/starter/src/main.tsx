import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Chat } from './Chat.tsx';
import { savedToken, signIn } from './session.ts';

/** The chat's id, after the `#` of the address. The page makes it, and it stands for a thread. */
function chatId(): string {
  if (location.hash.length < 2) history.replaceState(null, '', `#${crypto.randomUUID()}`);
  return location.hash.slice(1);
}

function App() {
  const [token, setToken] = useState(savedToken);
  const [problem, setProblem] = useState('');
  if (token !== null) return <Chat id={chatId()} token={token} />;
  return (
    <form
      action={(form) => signIn(String(form.get('code'))).then(setToken, (error: Error) => setProblem(error.message))}
    >
      <label>
        One-time code <input name="code" autoComplete="one-time-code" required />
      </label>
      <button type="submit">Sign in</button>
      {problem !== '' && <p role="alert">{problem}</p>}
    </form>
  );
}

const root = document.getElementById('app');
if (root === null) throw new Error('index.html has no element "app".');
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
