/** A fault as the contract's validator tells of it. */
export interface ValidatorFault {
  path?: string;
  message?: string;
}

const ofForms = /^must match (exactly one schema in oneOf|a schema in anyOf)$/;
const ofFields = /^must (have required property|NOT have additional properties)/;

/**
 * Where a value may have one of several forms, the validator tells what is wrong with it in each of them. A value of
 * the right fields with something wrong in one of them is meant to be of that form: that it lacks the fields of the
 * others says nothing.
 */
export function meantFaults(faults: readonly ValidatorFault[]): readonly ValidatorFault[] {
  const choices = faults.filter(({ message = '' }) => ofForms.test(message)).map(({ path = '' }) => path);
  return choices.reduce((left: readonly ValidatorFault[], at) => {
    const below = ({ path = '' }: ValidatorFault) => path.startsWith(`${at}/`);
    const isOfValue = (fault: ValidatorFault) =>
      below(fault) && !ofFields.test(fault.message ?? '') && !ofForms.test(fault.message ?? '');
    if (!left.some(isOfValue)) return left;
    return left.filter((fault) => isOfValue(fault) || !(fault.path === at || below(fault)));
  }, faults);
}
