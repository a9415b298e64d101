import type { Migration } from './migrate.ts';

/** Whether a call was in control of the desktop that it typed on, and from when to when. */
export const toolCallControl: Migration = {
  name: '0043-tool-call-control',
  async up({ sequelize }) {
    const [present] = await sequelize.query("SHOW COLUMNS FROM tool_calls LIKE 'control'");
    if (present.length === 0) await sequelize.query('ALTER TABLE tool_calls ADD COLUMN control TEXT NULL');
  },
};
