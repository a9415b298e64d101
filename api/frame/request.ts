import type { Request } from 'express';
import type { PageRequest } from '../../models/database/pages.ts';
import type { operations } from '../generated/types.gen.ts';

type OperationId = keyof operations;

type ContentOf<T> = T extends { content: { 'application/json': infer Body } }
  ? Body
  : T extends { content: { 'application/x-www-form-urlencoded': infer Form } }
    ? Form
    : never;

/** The type of an operation's body, of JSON or of a form. */
export type BodyOf<Id extends OperationId> = operations[Id] extends { requestBody?: infer RequestBody }
  ? ContentOf<NonNullable<RequestBody>>
  : never;

type PathOf<Id extends OperationId> = operations[Id]['parameters'] extends { path: infer Path } ? Path : never;

type QueryOf<Id extends OperationId> = operations[Id]['parameters'] extends { query?: infer Query }
  ? NonNullable<Query>
  : never;

/** The body, which the contract has checked. */
export function bodyOf<Id extends OperationId>(req: Request): BodyOf<Id> {
  return req.body as BodyOf<Id>;
}

/** The parameters in the path, which the contract has checked. */
export function pathOf<Id extends OperationId>(req: Request): PathOf<Id> {
  return req.params as PathOf<Id>;
}

/** The query, which the contract has checked, coerced and given its defaults. */
export function queryOf<Id extends OperationId>(req: Request): QueryOf<Id> {
  return req.query as QueryOf<Id>;
}

/** The requested page of a list. */
export function pageOf(req: Request): PageRequest {
  const { limit, cursor } = req.query as { limit?: number; cursor?: string };
  return { limit: limit ?? 50, cursor };
}
