/** The roles of the accessibility tree, as Chromium names them, by what becomes of them in a text. */

/** What can be acted on. */
export const interactive = new Set([
  'button',
  'checkbox',
  'combobox',
  'link',
  'listbox',
  'menuitem',
  'menuitemcheckbox',
  'menuitemradio',
  'radio',
  'scrollbar',
  'searchbox',
  'slider',
  'spinbutton',
  'switch',
  'tab',
  'textbox',
  'treeitem',
  'DisclosureTriangle',
  'Date',
  'DateTime',
  'InputTime',
  'ColorWell',
  'PopUpButton',
]);

/** A line each, with what is in them below. */
export const landmarks = new Set([
  'alert',
  'alertdialog',
  'article',
  'banner',
  'complementary',
  'contentinfo',
  'dialog',
  'figure',
  'form',
  'group',
  'grid',
  'list',
  'main',
  'menu',
  'menubar',
  'navigation',
  'radiogroup',
  'region',
  'search',
  'status',
  'table',
  'tablist',
  'tabpanel',
  'toolbar',
  'tree',
]);

/** A line each that has to say something, if only by its name. */
export const named = new Set([
  'heading',
  'img',
  'image',
  'option',
  'progressbar',
  'meter',
  'Video',
  'Audio',
  'Canvas',
  'math',
]);

/** What is in them is on one line, with this between, unless something is nested there. */
export const joined: Readonly<Record<string, string>> = {
  row: ' | ',
  LayoutTableRow: ' | ',
  paragraph: ' ',
  listitem: ' ',
  cell: ' ',
  gridcell: ' ',
  columnheader: ' ',
  rowheader: ' ',
  LayoutTableCell: ' ',
  term: ' ',
  definition: ' ',
  caption: ' ',
  blockquote: ' ',
};

/** What they say is the name of something else, or of what is within them. */
export const labels = new Set(['LabelText', 'Legend']);

/** What is in them is chosen by its name, not clicked. */
export const menus = new Set(['MenuListPopup']);

/** What is within says no more than their name. */
export const closed = new Set([
  'textbox',
  'searchbox',
  'spinbutton',
  'slider',
  'img',
  'image',
  'math',
  'Date',
  'DateTime',
  'InputTime',
  'ColorWell',
]);

/** Neither they nor what is within them is shown. */
export const hidden = new Set(['InlineTextBox', 'ListMarker', 'LineBreak']);

/** What Chromium calls otherwise than everybody else. */
export const plainNames: Readonly<Record<string, string>> = {
  image: 'img',
  Video: 'video',
  Audio: 'audio',
  Canvas: 'canvas',
  Date: 'date field',
  DateTime: 'date and time field',
  InputTime: 'time field',
  ColorWell: 'color field',
  DisclosureTriangle: 'disclosure button',
  PopUpButton: 'button with menu',
};

/** The properties that are told where they hold, and those with their value. */
export const states = ['disabled', 'required', 'readonly', 'focused', 'selected', 'modal', 'multiselectable'] as const;
export const values = ['checked', 'pressed', 'expanded', 'level', 'invalid'] as const;
