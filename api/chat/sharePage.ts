import { type Html, html } from '../frame/pages/html.ts';
import type { Page } from '../frame/pages/page.ts';
import type { presentSharedMessage, SharedPart } from './presentShare.ts';

export interface SharedThreadView {
  title: string | null;
  data: ReturnType<typeof presentSharedMessage>[];
  nextCursor: string | null;
}

/** The page of a shared thread. Everything said is shown as text: no link in it works, and no script in it runs. */
export function sharePage({ title, data, nextCursor }: SharedThreadView): Page {
  return {
    title: title ?? 'A shared chat',
    isWide: true,
    body: html`<p class="quiet">Everyone who has this link can read this chat.</p>
${data.filter(({ parts }) => parts.length > 0).map(messageOf)}
${nextCursor !== null && html`<a class="button second" href="?cursor=${nextCursor}">Next page</a>`}`,
  };
}

function messageOf({ role, parts, createdAt }: SharedThreadView['data'][number]): Html {
  return html`<article class="said ${role}">
<h2>${role === 'user' ? 'Question' : 'Answer'} <time class="quiet" datetime="${createdAt}">${createdAt.slice(0, 10)}</time></h2>
${parts.map(partOf)}
</article>
`;
}

function partOf(part: SharedPart): Html {
  switch (part.type) {
    case 'text':
      return html`<div class="text" dir="auto">${part.text}</div>`;
    case 'source':
      return html`<p class="quiet">Source: <a href="${part.url}" rel="noopener noreferrer nofollow">${part.title}</a></p>`;
    case 'file':
      return html`<p class="quiet">File: ${part.name}</p>`;
    case 'tool':
      return html`<details><summary>Tool <code>${part.toolName}</code></summary>
<pre>${part.input}</pre>${part.output !== null && html`<pre>${part.output}</pre>`}</details>`;
  }
}
