import { fromDevcontainer } from '../../../models/environments/definition/devcontainer.ts';
import { fromDockerfile } from '../../../models/environments/definition/dockerfile.ts';
import type { EnvironmentStep } from '../../../models/environments/steps.ts';

const context = '/project';
/** For texts with variables in braces. */
const $ = '$';
const read = (...lines: string[]) => fromDockerfile(lines.join('\n'), { context });
const stepsOf = (...lines: string[]) => read('FROM debian', ...lines).steps;

test.each([
  ['debian', 'debian'],
  ['debian:bookworm', 'debian'],
  ['debian:bookworm-slim', 'debian'],
  ['debian:12.7-slim', 'debian'],
  ['debian:bookworm-20260101-slim', 'debian'],
  ['docker.io/library/debian:12 AS build', 'debian'],
  ['agents', 'agents'],
  ['my-tools', 'my-tools'],
  // No base of ours, which is found out later.
  ['debian:trixie', 'debian:trixie'],
  ['node:22', 'node:22'],
])('FROM %s begins with %s', (image, base) => {
  expect(read(`FROM ${image}`)).toEqual({ base, steps: [], warnings: [] });
});

const steps: [string, string[], EnvironmentStep[]][] = [
  ['a command', ['RUN apt-get update'], [{ run: 'apt-get update' }]],
  ['lower case', ['run true'], [{ run: 'true' }]],
  [
    'lines that go on, with comments and empty lines between them',
    ['RUN a && \\', '  # why', '', '    b \\  ', '&& c'],
    [{ run: 'a &&     b && c' }],
  ],
  ['a list of words', [`RUN ["echo", "it's", "$HOME"]`], [{ run: `exec 'echo' 'it'\\''s' '$HOME'` }]],
  ['brackets that are no list', ['RUN [ -e file ]'], [{ run: '[ -e file ]' }]],
  ['a mount of a cache, left out', ['RUN --mount=type=cache,target=/x make'], [{ run: 'make' }]],
  ['variables', ['ENV A=1 B="2 3" C=\'$A\' D=a\\ b'], [{ env: { A: '1', B: '2 3', C: '$A', D: 'a b' } }]],
  ['a variable in the old form', ['ENV A some words'], [{ env: { A: 'some words' } }]],
  [
    'variables in later variables, but not in the same line',
    ['ENV A=1', `ENV A=2 B=$A C=${$}{A}x D=${$}{N:-none} E=${$}{A:+set} F=\\$A`],
    [{ env: { A: '1' } }, { env: { A: '2', B: '1', C: '1x', D: 'none', E: 'set', F: '$A' } }],
  ],
  ['quotes within quotes', [`ENV A="it's $B" B="a \\"b\\""`], [{ env: { A: "it's ", B: 'a "b"' } }]],
  ['a folder', ['ENV D=/srv', 'WORKDIR $D/app'], [{ env: { D: '/srv' } }, { workdir: '/srv/app' }]],
  ['a user', ['USER app'], [{ user: 'app' }]],
  ['a user with a group', ['USER 1000:staff'], [{ user: '1000:staff' }]],
  [
    'arguments, for commands and in words',
    ['ARG V=1.2', 'ARG EMPTY', 'RUN get $V', 'WORKDIR /opt/$V'],
    [{ run: "export V='1.2'\nget $V" }, { workdir: '/opt/1.2' }],
  ],
  ['a variable over an argument', ['ARG V=1', 'ENV V=2', 'RUN get $V'], [{ env: { V: '2' } }, { run: 'get $V' }]],
  ['a file', ['COPY a.txt /etc/'], [{ copy: { from: '/project/a.txt', to: '/etc/' } }]],
  ['all files', ['COPY . .'], [{ copy: { from: '/project/', to: '.' } }]],
  [
    'several files, with an owner',
    ['COPY --chown=app:app a "b c" /srv/'],
    [
      { copy: { from: '/project/a', to: '/srv/', owner: 'app:app' } },
      { copy: { from: '/project/b c', to: '/srv/', owner: 'app:app' } },
    ],
  ],
  ['files as a list', ['COPY ["b c", "/srv/"]'], [{ copy: { from: '/project/b c', to: '/srv/' } }]],
  ['a file that is added', ['ADD a /b'], [{ copy: { from: '/project/a', to: '/b' } }]],
  ['no way out of the context', ['COPY ../../etc/passwd /x'], [{ copy: { from: '/project/etc/passwd', to: '/x' } }]],
];
test.each(steps)('%s', (_what, lines, expected) => {
  expect(stepsOf(...lines)).toEqual(expected);
});

test('Arguments before FROM are for FROM, and later ones may take their defaults', () => {
  const text = `ARG TAG=bookworm\nARG V=1\nFROM debian:${$}{TAG}\nARG V\nRUN get`;
  expect(fromDockerfile(text, { args: { TAG: '12' } })).toEqual({
    base: 'debian',
    steps: [{ run: "export V='1'\nget" }],
    warnings: [],
  });
});

test('What only containers have is left out with a warning', () => {
  const lines = ['CMD ["a"]', 'ENTRYPOINT a', 'EXPOSE 80', 'LABEL a=b', 'VOLUME /data', 'HEALTHCHECK NONE'];
  const { steps: left, warnings } = read('FROM debian', ...lines);
  expect(left).toEqual([]);
  expect(warnings).toEqual(
    ['CMD', 'ENTRYPOINT', 'EXPOSE', 'LABEL', 'VOLUME', 'HEALTHCHECK'].map(
      (name, index) => `Line ${index + 2}: ${name} has no meaning here.`,
    ),
  );
});

test.each([
  [1, '', 'there is no FROM'],
  [1, 'RUN true', 'FROM comes first'],
  [2, '# escape=`\nFROM debian', 'only the backslash'],
  [2, 'FROM debian\nFROM debian', 'several stages'],
  [1, 'FROM --platform=linux/arm64 debian', 'not supported'],
  [1, 'FROM debian tools', 'one base'],
  [2, 'FROM debian\nSHELL ["/bin/bash", "-c"]', 'always /bin/sh'],
  [2, 'FROM debian\nFETCH a', 'no instruction FETCH'],
  [2, 'FROM debian\nRUN', 'says nothing'],
  [2, 'FROM debian\nRUN --mount=type=secret,id=a true', 'not supported'],
  [2, 'FROM debian\nRUN cat <<EOF\nEOF', 'here-documents'],
  [4, 'FROM debian\n# a\n\nENV A\\\n', 'write ENV'],
  [2, 'FROM debian\nENV 1=2', 'write ENV'],
  [2, 'FROM debian\nUSER a b', 'no name of a user'],
  [2, 'FROM debian\nCOPY a', 'at least two paths'],
  [2, 'FROM debian\nCOPY a b /c', 'with / at its end'],
  [2, 'FROM debian\nCOPY *.json /a/', 'wildcards'],
  [2, 'FROM debian\nCOPY --from=build /a /b', 'not supported'],
  [2, 'FROM debian\nADD https://example.com/a /b', 'fetch files by RUN'],
  [2, 'FROM debian\nADD a.tar.gz /b', 'archives are not unpacked'],
])('Line %i of %j is refused: %s', (line, text, why) => {
  const number = text.startsWith('# escape') ? 1 : line;
  const attempt = () => fromDockerfile(text, { context });
  expect(attempt).toThrow(expect.objectContaining({ code: 'DOCKERFILE_INVALID' }));
  expect(attempt).toThrow(new RegExp(`^Line ${number} of the Dockerfile cannot be built: .*${why}`));
});

test('Files are copied only from a folder that is named', () => {
  expect(() => fromDockerfile('FROM debian\nCOPY a b')).toThrow(/contextFolderId/);
});

test('A devcontainer becomes steps in the order in which its parts take effect', () => {
  const devcontainer = {
    name: 'Tools',
    image: 'debian:bookworm',
    containerEnv: { LANG: 'C.UTF-8' },
    remoteUser: 'dev',
    onCreateCommand: 'make tools',
    postCreateCommand: { first: 'a', second: ['b', 'c d'] },
    customizations: { editor: {} },
  };
  expect(fromDevcontainer(devcontainer, undefined)).toEqual({
    base: 'debian',
    steps: [
      { env: { LANG: 'C.UTF-8' } },
      { run: 'id -u dev > /dev/null 2>&1 || useradd --create-home --shell /bin/bash dev' },
      { user: 'dev' },
      { run: 'make tools' },
      { run: 'a' },
      { run: "exec 'b' 'c d'" },
    ],
    warnings: ['customizations has no meaning here.'],
  });
});

test('A devcontainer may have a Dockerfile, with arguments', () => {
  const devcontainer = { build: { args: { WHO: 'us' } }, postCreateCommand: ['true'] };
  expect(fromDevcontainer(devcontainer, 'FROM agents\nARG WHO=them\nRUN greet')).toEqual({
    base: 'agents',
    steps: [{ run: "export WHO='us'\ngreet" }, { run: "exec 'true'" }],
    warnings: [],
  });
});

test.each([
  [{ image: 'debian', features: { 'ghcr.io/devcontainers/features/node:1': {} } }, 'DEVCONTAINER_FEATURES_REFUSED'],
  [{}, 'DEVCONTAINER_INVALID'],
  [{ build: {} }, 'DEVCONTAINER_INVALID'],
  [{ image: 'debian', containerEnv: { A: `${$}{localEnv:HOME}` } }, 'DEVCONTAINER_INVALID'],
  [{ image: 'debian', onCreateCommand: [] }, 'DEVCONTAINER_INVALID'],
  [{ image: 'debian', updateContentCommand: 1 as unknown as string }, 'DEVCONTAINER_INVALID'],
])('The devcontainer %j is %s', (devcontainer, code) => {
  expect(() => fromDevcontainer(devcontainer, undefined)).toThrow(expect.objectContaining({ code }));
});
