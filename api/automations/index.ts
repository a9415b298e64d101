import type { Area } from '../frame/area.ts';
import type { AccessRows } from '../frame/auth/access.ts';
import { automationDeliveryRoutes } from './deliveryRoutes.ts';
import { automationRoutes } from './routes.ts';
import { automationRunRoutes } from './runRoutes.ts';

/** Who may do what. An automation acts as its author in their own thread, so nobody else may change or start it. */
const access = {
  listAutomations: 'editor',
  createAutomation: 'editor',
  getAutomation: 'editorsOwn',
  updateAutomation: 'editorsOwn',
  deleteAutomation: 'editorsOwn',
  runAutomation: 'editorsOwn',
  listAutomationRuns: 'editorsOwn',
  renewAutomationSecret: 'editorsOwn',
  receiveAutomationDelivery: 'signed',
} as const satisfies AccessRows;

export const automations = {
  access,
  routes: [automationRoutes, automationRunRoutes, automationDeliveryRoutes],
} as const satisfies Area;
