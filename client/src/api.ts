export type { components, operations, paths } from '../../api/types.gen.ts';
