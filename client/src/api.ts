export type { components, operations, paths } from '../../api/generated/types.gen.ts';
