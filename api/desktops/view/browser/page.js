import KeyTable from '/novnc/core/input/keysym.js';
import keysyms from '/novnc/core/input/keysymdef.js';
import RFB from '/novnc/core/rfb.js';
import { Channel } from './channel.js';

// The page of a desktop. The token of its viewer is in the fragment of its address. The page stores the token for this
// tab, and removes it from the address bar and the history.

const part = (id) => document.getElementById(id);
const key = 'token';
/** The codes with which the server closes the connection. */
const codes = { ended: 4001, over: 4002, forbidden: 4003 };
const qualities = { high: [9, 2], medium: [6, 4], low: [1, 9] };
const longestText = 262_144;
const firstRetryMs = 500;
const longestRetryMs = 10_000;

const given = location.hash.slice(1);
if (given !== '') {
  sessionStorage.setItem(key, given);
  history.replaceState(null, '', location.pathname);
}

let rfb;
let socket;
let mayControl = false;
let control = 'none';
let isRecorded = false;
let isOver = false;
let retryMs = firstRetryMs;
let quality = 'medium';
let resolution = '';
let isRealSize = false;
let isMoving = false;

function connect() {
  const token = sessionStorage.getItem(key);
  part('over').hidden = true;
  if (token === null) return say('This address is not complete', 'Open the whole address that you were given.');
  part('state').textContent = 'Connecting …';
  part('screen').replaceChildren();
  const url = `${location.protocol.replace('http', 'ws')}//${location.host}/socket`;
  socket = new WebSocket(url, ['atrium', `bearer.${token}`]);
  rfb = new RFB(part('screen'), new Channel(socket, { hear, closed }), { shared: true });
  rfb.resizeSession = false;
  rfb.viewOnly = true;
  rfb.focusOnClick = true;
  rfb.addEventListener('connect', () => {
    retryMs = firstRetryMs;
    show();
  });
  rfb.addEventListener('clipboard', ({ detail }) => {
    part('text').value = detail.text.slice(0, longestText);
    // If the browser does not allow this, people can copy the text from the field.
    if (document.hasFocus()) navigator.clipboard?.writeText(detail.text).catch(() => {});
  });
  applyQuality();
}

/** The server's messages besides the picture. */
function hear(message) {
  if (message.type === 'token') sessionStorage.setItem(key, message.token);
  if (message.type === 'state') {
    ({ mayControl, control, isRecorded, resolution } = message);
    show();
  }
}

function show() {
  const mine = control === 'you';
  if (rfb) rfb.viewOnly = !mine;
  const who = {
    you: 'You are in control',
    other: 'Another person is in control',
    agent: 'An agent is in control',
    none: 'No one is in control',
  };
  part('state').textContent = mayControl ? who[control] : 'You are watching';
  part('recorded').textContent = isRecorded ? 'Recorded' : '';
  part('take').hidden = !mayControl || mine;
  for (const id of ['release', 'keyboard', 'clipboard']) part(id).hidden = !mine;
  if (!mine) part('clip').hidden = true;
  applySize();
}

/** Shows the whole desktop, or a part of it in its real size, which a finger or the pointer moves. */
function applySize() {
  if (isOver) return;
  const [width, height] = resolution.split('x').map(Number);
  const { clientWidth, clientHeight } = part('screen');
  const isLarger = width > clientWidth || height > clientHeight;
  const isClipped = isRealSize && isLarger;
  const mine = control === 'you';
  part('zoom').hidden = !isLarger;
  part('zoom').textContent = isRealSize ? 'Show all' : 'Real size';
  // While the page is in control, this button says whether the pointer moves the view or acts on the desktop.
  part('move').hidden = !isClipped || !mine;
  part('move').setAttribute('aria-pressed', String(isMoving));
  if (!rfb) return;
  rfb.scaleViewport = !isClipped;
  rfb.clipViewport = isClipped;
  rfb.dragViewport = isClipped && (isMoving || !mine);
}

function closed(code, reason) {
  control = 'none';
  mayControl = false;
  isRecorded = false;
  show();
  if (code === codes.ended) return over('The desktop session has ended', reason);
  if (code === codes.over) return over('This link is not valid', reason);
  if (code === codes.forbidden) return over('You no longer have access', reason);
  say('The connection was lost', reason || 'Trying again …');
  part('again').hidden = false;
  setTimeout(() => {
    if (!isOver && !part('again').hidden) again();
  }, retryMs);
  retryMs = Math.min(retryMs * 2, longestRetryMs);
}

function over(title, why) {
  isOver = true;
  sessionStorage.removeItem(key);
  // The last picture is no longer current.
  part('screen').replaceChildren();
  for (const control of document.querySelectorAll('header button, header label')) control.hidden = true;
  say(title, why);
}

function say(title, why) {
  part('state').textContent = title;
  part('title').textContent = title;
  part('why').textContent = why;
  part('again').hidden = true;
  part('over').hidden = false;
}

function again() {
  part('again').hidden = true;
  connect();
}

/** Applies the chosen quality. `auto` means a low one if the browser says that the connection is slow. */
function applyQuality() {
  const chosen = part('quality').value;
  const line = navigator.connection;
  const isSlow = line?.saveData === true || ['slow-2g', '2g', '3g'].includes(line?.effectiveType);
  quality = chosen === 'auto' ? (isSlow ? 'low' : 'medium') : chosen;
  if (rfb) [rfb.qualityLevel, rfb.compressionLevel] = qualities[quality];
}

const order = (type) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify({ type }));

/** A phone's keyboard types into a field, and the page types the field's text on the desktop. */
function typed() {
  const field = part('keys');
  for (const character of field.value) {
    if (character === '\n') rfb.sendKey(KeyTable.XK_Return, 'Enter');
    else rfb.sendKey(keysyms.lookup(character.codePointAt(0)), null);
  }
  field.value = '';
}

part('take').onclick = () => order('take');
part('release').onclick = () => order('release');
part('zoom').onclick = () => {
  isRealSize = !isRealSize;
  isMoving = isRealSize;
  applySize();
};
part('move').onclick = () => {
  isMoving = !isMoving;
  applySize();
};
part('again').onclick = again;
part('quality').onchange = applyQuality;
part('keyboard').onclick = () => part('keys').focus();
part('keys').oninput = (event) => {
  if (!event.isComposing) typed();
};
part('keys').addEventListener('compositionend', typed);
part('keys').onkeydown = (event) => {
  const keysym = { Backspace: KeyTable.XK_BackSpace, Enter: KeyTable.XK_Return, Tab: KeyTable.XK_Tab }[event.key];
  if (keysym === undefined || event.isComposing) return;
  event.preventDefault();
  rfb.sendKey(keysym, event.code || null);
};
part('clipboard').onclick = () => {
  const clip = part('clip');
  clip.hidden = !clip.hidden;
  part('clipboard').setAttribute('aria-expanded', String(!clip.hidden));
};
part('send').onclick = () => rfb?.clipboardPasteFrom(part('text').value.slice(0, longestText));
part('whole').onclick = () => {
  if (document.fullscreenElement === null) document.documentElement.requestFullscreen?.().catch(() => {});
  else document.exitFullscreen();
};
new ResizeObserver(applySize).observe(part('screen'));
// The user has opened another address in this tab.
addEventListener('hashchange', () => location.reload());
connect();
