import type { CatalogueModel } from '../../integrations/chat/catalogue.ts';

/** A model as endpoints 1 and 3 show it. */
export function presentModel(model: CatalogueModel) {
  return {
    id: model.id,
    name: model.name,
    provider: model.provider,
    pricingRates: model.pricingRates,
    effortOptions: model.effortOptions,
    ...(model.defaultEffort !== undefined && { defaultEffort: model.defaultEffort }),
    capabilities: model.capabilities,
  };
}
