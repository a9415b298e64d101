import { meantFaults } from '../../../api/frame/failures.ts';

const required = (name: string) => ({
  path: `/body/schedule/${name}`,
  message: `must have required property '${name}'`,
});
const additional = (name: string) => ({
  path: `/body/schedule/${name}`,
  message: 'must NOT have additional properties',
});
const wrong = { path: '/body/schedule/at', message: 'must match format "date-time"' };
const noForm = { path: '/body/schedule', message: 'must match exactly one schema in oneOf' };
const notNull = { path: '/body/schedule', message: 'must be null' };
const elsewhere = { path: '/body/name', message: "must have required property 'name'" };

test('Of several forms, only the faults of the one that was meant are reported', () => {
  const told = [elsewhere, required('cron'), required('timeZone'), additional('at'), wrong, noForm, notNull];
  expect(meantFaults(told)).toEqual([elsewhere, wrong]);
});

test('All faults are reported if no form is meant more than another', () => {
  const told = [required('cron'), required('at'), noForm];
  expect(meantFaults(told)).toEqual(told);
  expect(meantFaults([elsewhere])).toEqual([elsewhere]);
});

test('A list that is only too long is told so, not that it should hold other things', () => {
  const at = { path: '/body/input' };
  const tooLong = { ...at, message: 'must NOT have more than 2048 items' };
  const others = ['must be string', 'must match a schema in anyOf'].map((message) => ({ ...at, message }));
  const ofItem = { path: '/body/input/0', message: 'must be integer' };
  expect(meantFaults([...others, tooLong, ofItem, tooLong, elsewhere])).toEqual([elsewhere, tooLong]);
  const wrongItem = { path: '/body/input/0', message: 'must NOT have fewer than 1 characters' };
  expect(meantFaults([...others, tooLong, wrongItem])).toEqual([wrongItem]);
});

test('The type is not reported as wrong if one form has it, and another rule is broken', () => {
  const fault = (path: string, message: string) => ({ path: `/body/input${path}`, message });
  const isNoForm = fault('', 'must match a schema in anyOf');
  const isEmpty = fault('', 'must NOT have fewer than 1 items');
  const isText = fault('', 'must be string');
  expect(meantFaults([isText, isEmpty, isEmpty, isNoForm, elsewhere])).toEqual([elsewhere, isEmpty]);
  const isLong = fault('', 'must NOT have more than 2048 items');
  expect(meantFaults([isText, isLong, fault('/0', 'must be integer'), isNoForm])).toEqual([isLong]);
  // No form has the type of the value.
  const isList = fault('', 'must be array');
  expect(meantFaults([isText, isList, isNoForm])).toEqual([isText, isList, isNoForm]);
});
