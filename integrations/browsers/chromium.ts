import type { ProcessInfo, StartProcess } from '../computers/types.ts';
import type { BrowserSpec } from './types.ts';

/** The exit codes of a start for which a computer lacks Chromium, and of one whose profile another browser has. */
export const exitCodes = { missing: 127, profileInUse: 75, profileUnusable: 73 } as const;

/** Where Chromium writes its port and the path of its DevTools endpoint, in its profile. */
export const endpointFile = 'DevToolsActivePort';

/** What of a profile is not worth keeping: Chromium makes it anew. As paths in the profile. */
export const profileCaches = [
  'Default/Cache',
  'Default/Code Cache',
  'Default/GPUCache',
  'Default/DawnGraphiteCache',
  'Default/DawnWebGPUCache',
  'GrShaderCache',
  'GraphiteDawnCache',
  'ShaderCache',
  'component_crx_cache',
  'extensions_crx_cache',
] as const;

const cacheBytes = 64 * 1_048_576;
const proxy = 'http://127.0.0.1:3128';

/** Most would call home or take their time, and are of no use to a session. */
const featuresOff = [
  'AutofillServerCommunication',
  'CertificateTransparencyComponentUpdater',
  'DialMediaRouteProvider',
  'GlobalMediaControls',
  'InterestFeedContentSuggestions',
  'MediaRouter',
  'OptimizationGuideModelDownloading',
  'OptimizationHints',
  'Translate',
  // Pages of Chromium's own for its address bar, which take time and memory at each start.
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'WebUIOmniboxPopup',
];

/** Some parts of itself Chromium looks for in spite of all that; where nothing answers, it does without. */
const noUpdates = '--component-updater=disable-pings,url-source=http://127.0.0.1:9/';

/**
 * Loopback passes the proxy by, so that pages see what runs on the same computer. By itself Chromium would leave out
 * link-local addresses too, which are then refused by nobody, and logged nowhere.
 */
const pastProxy = '<-loopback>;localhost;*.localhost;127.0.0.0/8;[::1]';

/**
 * The computer is the sandbox: inside of
 * it Chromium cannot make its own.
 */
const flags = [
  '--remote-debugging-port=0',
  '--no-sandbox',
  `--proxy-server=${proxy}`,
  `--proxy-bypass-list=${pastProxy}`,
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-breakpad',
  '--disable-client-side-phishing-detection',
  '--disable-component-extensions-with-background-pages',
  '--disable-component-update',
  noUpdates,
  '--disable-default-apps',
  '--disable-extensions',
  '--disable-domain-reliability',
  '--disable-search-engine-choice-screen',
  '--disable-sync',
  '--hide-crash-restore-bubble',
  '--metrics-recording-only',
  '--no-pings',
  '--no-service-autorun',
  '--password-store=basic',
  '--force-device-scale-factor=1',
  `--disk-cache-size=${cacheBytes}`,
  `--disable-features=${featuresOff.join(',')}`,
];

/**
 * Starts Chromium, and lasts as long as it does. A profile has one Chromium at a time: whoever has its lock. What one
 * that was killed has left there is removed, since it would keep the next from starting, or show the port of the one
 * before. Where downloads land Chromium asks of XDG.
 */
const script = `
for program in /usr/lib/chromium/chromium chromium chromium-browser google-chrome; do
  chromium=$(command -v "$program") && break
done
[ -n "$chromium" ] || { echo "Chromium is missing" >&2; exit ${exitCodes.missing}; }
profile=$1 downloads=$2 own=/tmp/.atrium/$3
shift 3
umask 077
mkdir -p "$profile" "$own" || exit ${exitCodes.profileUnusable}
(umask 022; mkdir -p "$downloads") || exit ${exitCodes.profileUnusable}
exec 9>"$profile/.atrium-lock" || exit ${exitCodes.profileUnusable}
flock -n 9 || exit ${exitCodes.profileInUse}
rm -f "$profile"/Singleton* "$profile/${endpointFile}" || exit ${exitCodes.profileUnusable}
escaped=$(printf %s "$downloads" | sed 's/[\\\\"$\`]/\\\\&/g')
printf 'XDG_DOWNLOAD_DIR="%s"\\n' "$escaped" >"$own/user-dirs.dirs"
export XDG_CONFIG_HOME="$own"
exec "$chromium" --user-data-dir="$profile" "$@" </dev/null
`;

const scriptName = 'browser';

/** However often it is started, it runs once. */
export function startRequest(spec: BrowserSpec, home: string): StartProcess {
  const { id, width, height, display } = spec;
  // Without a display, a page has the whole of it.
  const own =
    display === undefined
      ? ['--headless', '--hide-scrollbars', '--start-fullscreen', `--screen-info={${width}x${height}}`]
      : [];
  const inHome = (folder: string) => (folder.startsWith('/') ? folder : `${home}/${folder}`);
  const folders = [inHome(spec.profileFolder), inHome(spec.downloadsFolder)];
  const size = ['--window-position=0,0', `--window-size=${width},${height}`];
  return {
    processId: id,
    command: ['/bin/sh', '-c', script, scriptName, ...folders, id, ...flags, ...own, ...size, 'about:blank'],
    // Without it Chromium looks for a bus that no computer has.
    env: { DBUS_SESSION_BUS_ADDRESS: 'disabled:', ...(display !== undefined && { DISPLAY: `:${display}` }) },
  };
}

/** What it takes to end it, of a process of a computer that is a browser; undefined for any other. */
export function startedBy({ processId, command }: ProcessInfo): BrowserSpec | undefined {
  const [, , , name, profileFolder, downloadsFolder, id] = Array.isArray(command) ? command : [];
  if (name !== scriptName || id !== processId || profileFolder === undefined || downloadsFolder === undefined) return;
  return { id, profileFolder, downloadsFolder, width: 0, height: 0 };
}
