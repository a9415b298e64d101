/**
 * Prefix of the variables with which tests in their own processes find the stack: variables of config/ with TEST_STACK_
 * in the name.
 */
export const testVariablePrefix = 'ATRIUM_TEST_STACK_';
