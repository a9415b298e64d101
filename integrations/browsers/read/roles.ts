/** How each role of the accessibility tree is written. The names are Chromium’s. */

function roles(names: string): ReadonlySet<string> {
  return new Set(names.split(/\s+/));
}

/** Elements that take actions. */
export const interactive = roles(
  `button checkbox combobox link listbox menuitem menuitemcheckbox menuitemradio radio scrollbar searchbox slider
  spinbutton switch tab textbox treeitem DisclosureTriangle Date DateTime InputTime ColorWell PopUpButton`,
);

/** Each gets a line of its own, with its content below. */
export const landmarks = roles(
  `alert alertdialog article banner complementary contentinfo dialog figure form group grid list main menu menubar
  navigation radiogroup region search status table tablist tabpanel toolbar tree`,
);

/** Each gets a line if it has a name. */
export const named = roles('heading img image option progressbar meter Video Audio Canvas math');

/** Their content is joined into one line, with a bar or a space in between, unless something is nested in it. */
export const rows = roles('row LayoutTableRow');
export const inline = roles(
  'paragraph listitem cell gridcell columnheader rowheader LayoutTableCell term definition caption blockquote',
);

/** Their text is the name of another element. */
export const labels = roles('LabelText Legend');

/** Their content is selected by name, not clicked. */
export const menus = roles('MenuListPopup');

/** Their content says no more than their name. */
export const closed = roles('textbox searchbox spinbutton slider img image math Date DateTime InputTime ColorWell');

/** Neither they nor their content is written. */
export const hidden = roles('InlineTextBox ListMarker LineBreak');

/** Common names for roles that Chromium names differently. */
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

/** Properties that are written when they are true, and properties that are written with their value. */
export const states = ['disabled', 'required', 'readonly', 'focused', 'selected', 'modal', 'multiselectable'] as const;
export const values = ['checked', 'pressed', 'expanded', 'level', 'invalid'] as const;
