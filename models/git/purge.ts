import type { AreaPurge } from '../areaPurge.ts';

export const gitPurge: AreaPurge = {
  ofSpace: ['git_credentials', 'git_orders', 'git_bundles', 'git_repositories'],
};
