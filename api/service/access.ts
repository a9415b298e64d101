import type { AccessRows } from '../frame/auth/access.ts';

/** Who may ask the service about itself. */
export const access = {
  getFrontPage: 'anyone',
  getHealth: 'anyone',
  getReadiness: 'anyone',
  getMetrics: 'operator',
  getContractYaml: 'anyone',
  getContractJson: 'anyone',
  getReferencePage: 'anyone',
} as const satisfies AccessRows;
