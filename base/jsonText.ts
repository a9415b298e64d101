import { DataTypes, type Model } from 'sequelize';

/** A column that keeps JSON as text: MySQL and MariaDB disagree about the JSON type, and agree about text. */
export function jsonText(field: string) {
  return {
    type: DataTypes.TEXT('medium'),
    get(this: Model): unknown {
      const text = this.getDataValue(field) as string | null;
      return text === null || text === undefined ? null : JSON.parse(text);
    },
    set(this: Model, value: unknown) {
      this.setDataValue(field, value === null || value === undefined ? null : JSON.stringify(value));
    },
  };
}
