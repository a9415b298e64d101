/**
 * Functions that run in a page on one of its elements, as plain JavaScript. They run in a world of their own, so that
 * the page cannot change the functions that they call.
 */

/**
 * A visible point of the element in its document’s viewport, and the element’s upper left corner. `by` names the
 * element that covers the point. Null when no part of the element is drawn.
 */
export const place = `function () {
  const view = this.ownerDocument.defaultView;
  const isDrawn = ({ width, height }) => width > 0 && height > 0;
  const within = (rect) => {
    const left = Math.max(rect.left, 0), right = Math.min(rect.right, view.innerWidth);
    const top = Math.max(rect.top, 0), bottom = Math.min(rect.bottom, view.innerHeight);
    return { left, top, width: right - left, height: bottom - top };
  };
  const rect = [...this.getClientRects()].map(within).find(isDrawn);
  if (rect === undefined || view.getComputedStyle(this).visibility !== 'visible') return null;
  const x = rect.left + rect.width / 2, y = rect.top + rect.height / 2;
  const all = this.getBoundingClientRect();
  const hit = this.getRootNode().elementFromPoint(x, y);
  let inner = hit;
  while (inner !== null && inner !== this) inner = inner.parentNode ?? inner.host ?? null;
  const isFree = hit === null || inner === this || hit.contains(this) || hit.closest('label')?.control === this;
  const by = isFree ? null : hit.localName;
  return { x, y, left: all.left, top: all.top, by };
}`;

/** The corner of an iframe’s document, counted from the corner of the iframe. */
export const innerCorner = `function () {
  const style = this.ownerDocument.defaultView.getComputedStyle(this);
  return { x: this.clientLeft + parseFloat(style.paddingLeft), y: this.clientTop + parseFloat(style.paddingTop) };
}`;

/**
 * How an element takes text: by typing, as a value, or not at all. It selects the old text, so that typing replaces it.
 */
export const prepareTyping = `function () {
  if (this.disabled || this.readOnly || this.getAttribute('aria-disabled') === 'true') return 'disabled';
  const valued = ['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range'];
  const never = ['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file', 'hidden'];
  const { tagName } = this;
  if (tagName === 'INPUT' && valued.includes(this.type)) return 'valued';
  if (tagName === 'INPUT' ? never.includes(this.type) : tagName !== 'TEXTAREA' && !this.isContentEditable) return 'never';
  this.focus();
  if (tagName === 'INPUT' || tagName === 'TEXTAREA') this.select();
  else this.ownerDocument.getSelection().selectAllChildren(this);
  return 'typed';
}`;

/** Sets the value of an element such as a date field, as a person would. Answers whether the element took it. */
export const setValue = `function (text) {
  this.focus();
  this.value = text;
  this.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  this.dispatchEvent(new Event('change', { bubbles: true }));
  return this.value === text;
}`;

/** Selects options by their values or labels. Answers what is wrong, or an empty text. */
export const selectOptions = `function (wanted) {
  if (this.tagName !== 'SELECT') return 'never';
  if (this.disabled) return 'disabled';
  if (wanted.length !== 1 && !this.multiple) return 'single';
  const options = [...this.options];
  const named = (name) =>
    options.find(({ value }) => value === name) ?? options.find(({ label, text }) => [label, text].includes(name.trim()));
  const found = wanted.map(named);
  if (found.includes(undefined)) return 'missing';
  if (found.some((option) => option.disabled)) return 'disabled';
  this.focus();
  for (const option of options) option.selected = found.includes(option);
  this.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  this.dispatchEvent(new Event('change', { bubbles: true }));
  return '';
}`;
