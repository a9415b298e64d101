import {
  type Attributes,
  DataTypes,
  type Model,
  type ModelAttributes,
  type ModelStatic,
  type Sequelize,
} from 'sequelize';
import { modelsOf } from '../database/bound.ts';

export type Role = 'owner' | 'editor' | 'viewer';

export interface UserRow {
  id: string;
  /** Lower-cased and trimmed. */
  email: string;
  name: string;
  defaultSpaceId: string | null;
  createdAt: Date;
  disabledAt: Date | null;
}

export interface SpaceRow {
  id: string;
  name: string;
  createdBy: string;
  createdAt: Date;
  deletedAt: Date | null;
}

export interface MemberRow {
  spaceId: string;
  userId: string;
  role: Role;
  createdAt: Date;
}

export interface SessionRow {
  id: string;
  userId: string;
  label: string | null;
  createdAt: Date;
  expiresAt: Date;
  revokedAt: Date | null;
}

export interface ApiKeyRow {
  id: string;
  userId: string;
  parentKeyId: string | null;
  name: string;
  hash: Buffer;
  /** The key's beginning, by which its owner recognises it. */
  hint: string;
  /** A JSON array. */
  scopes: string;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
}

export interface AuthCodeRow {
  hash: Buffer;
  userId: string;
  createdAt: Date;
  expiresAt: Date;
  usedAt: Date | null;
}

export interface DataKeyRow {
  id: string;
  scope: string;
  version: number;
  masterKeyId: string;
  wrappedKey: Buffer;
  createdAt: Date;
}

export interface SigningKeyRow {
  id: string;
  algorithm: string;
  publicJwk: string;
  privateJwkSealed: Buffer;
  createdAt: Date;
  retiredAt: Date | null;
}

export type Table<Row extends object> = ModelStatic<Model<Row, Row>>;

const id = { type: DataTypes.STRING(40), primaryKey: true } as const;
const text = (length: number) => ({ type: DataTypes.STRING(length), allowNull: false }) as const;
const optionalText = (length: number) => ({ type: DataTypes.STRING(length), allowNull: true }) as const;
const bytes = { type: DataTypes.BLOB, allowNull: false } as const;
const time = { type: DataTypes.DATE(3), allowNull: false } as const;
const optionalTime = { type: DataTypes.DATE(3), allowNull: true } as const;

function defineTables(sequelize: Sequelize) {
  function table<Row extends object>(name: string, attributes: ModelAttributes<Model<Row, Row>, Row>): Table<Row> {
    // Sequelize writes each column's name into its definition, so each column gets its own copy.
    const own = Object.fromEntries(
      Object.entries(attributes).map(([column, definition]) => [column, { ...(definition as object) }]),
    ) as typeof attributes;
    return sequelize.define<Model<Row, Row>, Attributes<Model<Row, Row>>>(name, own, { tableName: name });
  }
  return {
    users: table<UserRow>('users', {
      id,
      email: text(254),
      name: text(200),
      defaultSpaceId: optionalText(40),
      createdAt: time,
      disabledAt: optionalTime,
    }),
    spaces: table<SpaceRow>('spaces', {
      id,
      name: text(200),
      createdBy: text(40),
      createdAt: time,
      deletedAt: optionalTime,
    }),
    members: table<MemberRow>('space_members', {
      spaceId: id,
      userId: id,
      role: { type: DataTypes.ENUM('owner', 'editor', 'viewer'), allowNull: false },
      createdAt: time,
    }),
    sessions: table<SessionRow>('sessions', {
      id,
      userId: text(40),
      label: optionalText(200),
      createdAt: time,
      expiresAt: time,
      revokedAt: optionalTime,
    }),
    apiKeys: table<ApiKeyRow>('api_keys', {
      id,
      userId: text(40),
      parentKeyId: optionalText(40),
      name: text(200),
      hash: bytes,
      hint: text(12),
      scopes: { type: DataTypes.TEXT, allowNull: false },
      createdAt: time,
      expiresAt: optionalTime,
      revokedAt: optionalTime,
      lastUsedAt: optionalTime,
    }),
    authCodes: table<AuthCodeRow>('auth_codes', {
      hash: { ...bytes, primaryKey: true },
      userId: text(40),
      createdAt: time,
      expiresAt: time,
      usedAt: optionalTime,
    }),
    dataKeys: table<DataKeyRow>('data_keys', {
      id,
      scope: text(40),
      version: { type: DataTypes.INTEGER.UNSIGNED, allowNull: false },
      masterKeyId: text(255),
      wrappedKey: bytes,
      createdAt: time,
    }),
    signingKeys: table<SigningKeyRow>('signing_keys', {
      id,
      algorithm: text(16),
      publicJwk: { type: DataTypes.TEXT, allowNull: false },
      privateJwkSealed: bytes,
      createdAt: time,
      retiredAt: optionalTime,
    }),
  };
}

/** The tables of this area, bound to a database. */
export const identityTables = modelsOf(defineTables);
