import type { Operation } from '../../../api/frame/contract.ts';
import { createRouteTable } from '../../../api/frame/routeTable.ts';

function tableOf(...paths: string[]) {
  const match = createRouteTable(paths.map((path) => ({ id: path, method: 'GET', path }) as Operation));
  return (path: string) => {
    const found = match(path);
    return found === undefined ? undefined : [found.operations.get('GET')?.path, found.params];
  };
}

test('a literal wins over a parameter, whatever their order', () => {
  for (const paths of [
    ['/billing/{spaceId}', '/billing/checkout-success'],
    ['/billing/checkout-success', '/billing/{spaceId}'],
  ]) {
    const match = tableOf(...paths);
    expect(match('/billing/checkout-success')).toEqual(['/billing/checkout-success', {}]);
    expect(match('/billing/spc_1')).toEqual(['/billing/{spaceId}', { spaceId: 'spc_1' }]);
  }
});

test('the earlier literal decides between two patterns', () => {
  const match = tableOf('/s/{s}/{kind}/status', '/s/{s}/computers/{id}');
  expect(match('/s/1/computers/status')?.[0]).toBe('/s/{s}/computers/{id}');
  expect(match('/s/1/desktops/status')?.[0]).toBe('/s/{s}/{kind}/status');
});

test('parameters are decoded, and are never empty', () => {
  const match = tableOf('/a/{x}/b');
  expect(match('/a/%2F%20%C3%A9/b')).toEqual(['/a/{x}/b', { x: '/ é' }]);
  expect(match('/a//b')).toBeUndefined();
  expect(() => match('/a/%zz/b')).toThrow(URIError);
  expect(() => match('/a/%ff/b')).toThrow(URIError);
});

test('paths are exact', () => {
  const match = tableOf('/api/me', '/api/{x}');
  for (const path of ['/api/me/', '/API/me', '/api', '/api/me/x', '']) expect(match(path)).toBeUndefined();
});
