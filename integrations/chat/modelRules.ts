import { DomainError } from '../../base/errors.ts';
import type { CatalogueModel, ModelChoice, ModelNeeds } from './catalogue.ts';

/** Up to this size an `ask` turn counts as a small question. */
const smallPromptTokens = 8_000;

/**
 * The rules of `autoModel`, in order. The demo model is used only if there is no other. docs/models.md explains them.
 * 1. Models that cannot take the turn's files, tools or length, or the requested effort, are left out.
 * 2. A small question (mode `ask`, no files, at most 8,000 tokens) goes to the cheapest of the rest, by output price.
 * 3. Everything else goes to the default model, or to the first in the catalogue if the default was left out.
 */
export function chooseModel(
  models: readonly CatalogueModel[],
  defaultModelId: string,
  needs: ModelNeeds,
  effort: string | undefined,
): ModelChoice {
  // The demo model only talks about itself, so it is used only if there is no other.
  const real = models.filter(({ adapter }) => adapter !== 'demo');
  const able = (real.length > 0 ? real : models).filter((model) => canDo(model, needs));
  const suitable = effort === undefined ? able : able.filter((model) => model.effortOptions.includes(effort));
  const first = suitable[0];
  if (first === undefined) throw nothingSuits(models, able, effort);

  const small = needs.mode === 'ask' && !needs.images && !needs.pdf && (needs.inputTokens ?? 0) <= smallPromptTokens;
  const model = small ? (cheapest(suitable) ?? first) : (suitable.find(({ id }) => id === defaultModelId) ?? first);
  return { model, effort: effortOrDefault(model, effort) };
}

/** The model with the lowest output price; the first of equals. */
export function cheapest(models: readonly CatalogueModel[]): CatalogueModel | undefined {
  return models.reduce<CatalogueModel | undefined>(
    (best, next) => (best === undefined || outputPrice(next) < outputPrice(best) ? next : best),
    undefined,
  );
}

/** A model without a price for output does not count as cheap. */
function outputPrice(model: CatalogueModel): number {
  const rate = model.pricingRates.find(({ label }) => label.toLowerCase() === 'output');
  return rate?.creditsPerUnit ?? Number.POSITIVE_INFINITY;
}

function nothingSuits(models: readonly CatalogueModel[], able: readonly CatalogueModel[], effort: string | undefined) {
  if (able.length > 0) {
    const efforts = new Set(able.flatMap((model) => model.effortOptions));
    const available = efforts.size === 0 ? 'None takes one' : `Available are: ${[...efforts].join(', ')}`;
    return refused('EFFORT_UNKNOWN', `No model has the effort ${effort}. ${available}.`, '/effort');
  }
  const ids = models.map((model) => model.id).join(', ');
  return refused('MODEL_UNSUITABLE', `No model can take this message. Available are: ${ids}.`, '/autoModel');
}

/** Whether the model continues an answer that the prompt ends with. Providers refuse this for calls that reason. */
export function canContinue(model: CatalogueModel, effort: string | null): boolean {
  if (model.capabilities.continues !== true) return false;
  return [undefined, 'none'].includes(effortOrDefault(model, effort));
}

/** Whether a model can handle a turn: its files, its tools, its length with room for an answer. */
export function canDo({ capabilities }: CatalogueModel, needs: ModelNeeds): boolean {
  const roomForAnswer = Math.min(capabilities.maxOutputTokens, 4_096);
  return (
    (capabilities.images || needs.images !== true) &&
    (capabilities.pdf || needs.pdf !== true) &&
    (capabilities.tools || needs.tools !== true) &&
    (needs.inputTokens ?? 0) + roomForAnswer <= capabilities.contextWindowTokens
  );
}

/**
 * The effort for a call: the requested one, else the model's default. Throws EFFORT_UNKNOWN with the model's efforts.
 */
export function effortOf(model: CatalogueModel, effort: string | null | undefined): string | undefined {
  if (effort === undefined || effort === null || model.effortOptions.includes(effort))
    return effort ?? model.defaultEffort;
  const detail =
    model.effortOptions.length === 0
      ? `The model ${model.id} takes no effort.`
      : `The model ${model.id} has no such effort. It has: ${model.effortOptions.join(', ')}.`;
  throw refused('EFFORT_UNKNOWN', detail, '/effort');
}

/** Like {@link effortOf}, for a fallback model, which may lack the requested effort. */
export function effortOrDefault(model: CatalogueModel, effort: string | null | undefined): string | undefined {
  return typeof effort === 'string' && model.effortOptions.includes(effort) ? effort : model.defaultEffort;
}

/** A 422 that names the field it is about. */
export function refused(code: string, detail: string, pointer: string): DomainError {
  return new DomainError('unprocessable', code, detail, { errors: [{ pointer, detail }] });
}
