import type { EnvironmentStep } from './steps.ts';

const install = (packages: string) =>
  `apt-get update && apt-get install -y --no-install-recommends ${packages.trim().replace(/\s+/g, ' ')} && rm -rf /var/lib/apt/lists/*`;

/**
 * What agents reach for. Large and old programs come first: a change of a later step leaves the earlier ones as they are
 * built.
 */
export const agentSteps: readonly EnvironmentStep[] = [
  { env: { DEBIAN_FRONTEND: 'noninteractive' } },
  {
    run: install(`fonts-dejavu fonts-liberation fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji
      libreoffice-calc-nogui libreoffice-impress-nogui libreoffice-writer-nogui`),
  },
  { run: install('chromium') },
  { run: install('build-essential ca-certificates git openssh-client pkg-config') },
  { run: install('python3 python3-dev python3-pip python3-venv') },
  { run: install('nodejs npm') },
  {
    run: install(`bzip2 curl file jq less pandoc poppler-utils procps ripgrep rsync sqlite3 unzip wget xz-utils zip`),
  },
];
