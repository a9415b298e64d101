import type { StartProcess } from '../../computers/types.ts';

/** The parameters for starting a recording's recorder. */
export interface RecorderSpec {
  /** The id of the recording and of its process. */
  id: string;
  /** The number in `DISPLAY`. */
  display: number;
  /** The size of the pictures, in even numbers. */
  width: number;
  height: number;
  framesPerSecond: number;
  maxSeconds: number;
  maxBytes: number;
}

/** The exit codes of the scripts. */
export const exitCodes = {
  stopped: 0,
  displayGone: 64,
  seconds: 65,
  bytes: 66,
  broken: 67,
  noFile: 68,
  noPicture: 69,
  missingProgram: 127,
} as const;

/** A path below the computer’s home, without the file's extension. Files in `/tmp` would count as memory. */
function stemOf({ id }: Pick<RecorderSpec, 'id'>): string {
  return `.atrium/recordings/${id}`;
}

/** The file that grows during a recording. Players can play it however the recording ends. */
export function partPath(spec: Pick<RecorderSpec, 'id'>): string {
  return `${stemOf(spec)}.part.mp4`;
}

/** The finished file, which goes into the drive. */
export function filePath(spec: Pick<RecorderSpec, 'id'>): string {
  return `${stemOf(spec)}.mp4`;
}

/**
 * One ffmpeg takes pictures of the display and passes them through a pipe to a second one, which writes the file.
 *
 * The first one takes pictures of a fixed size, so the script starts it again when the display changes its size. It
 * scales and pads the pictures to the size of the file. Each picture gets the time of its arrival: a slow machine
 * leaves pictures out instead of falling behind, and a computer that was paused leaves a gap of two seconds. A picture
 * that was passed on in part would shift all later ones, so the recording ends when the first ffmpeg was killed.
 *
 * The file consists of fragments of one second, so a kill loses at most the last second.
 */
const recordScript = `
part=$1 display=$2 width=$3 height=$4 rate=$5 seconds=$6 bytes=$7 folder=$8
for program in ffmpeg ffprobe xrandr mkfifo; do
  command -v $program >/dev/null || { echo "$program is missing" >&2; exit ${exitCodes.missingProgram}; }
done
renice -n 10 -p $$ >/dev/null 2>&1
umask 077
mkdir -p "\${part%/*}" "$folder" && rm -f "$folder/pictures" && mkfifo "$folder/pictures" || exit ${exitCodes.broken}
size() {
  xrandr -display ":$display" --current 2>/dev/null | sed -n 's/.* current \\([0-9]*\\) x \\([0-9]*\\),.*/\\1x\\2/p;q'
}
# Another session may get the same display number later.
server=$(cat "/tmp/.X$display-lock" 2>/dev/null)
same() { [ -n "$server" ] && [ "$(cat "/tmp/.X$display-lock" 2>/dev/null)" = "$server" ]; }
video() { exec ffmpeg -nostdin -hide_banner -loglevel error "$@"; }
lives() { kill -0 "$1" 2>/dev/null; }
stop=
trap 'stop=1' TERM
video -use_wallclock_as_timestamps 1 -f rawvideo -pix_fmt yuv420p -video_size "\${width}x$height" -framerate "$rate" \\
  -i "$folder/pictures" -vf "setpts='if(N,PREV_OUTPTS+min(PTS-PREV_INPTS,2/TB),0)'" -filter_threads 1 -fps_mode vfr \\
  -c:v libx264 -preset ultrafast -tune zerolatency -crf 26 -threads 1 -g $((rate * 5)) -t "$seconds" -fs "$bytes" \\
  -f mp4 -movflags +frag_keyframe+empty_moov+default_base_moof -frag_duration 1000000 -flush_packets 1 -y "$part" &
writer=$!
# Open for reading too, so that opening the pipe does not wait for the writer.
exec 3<>"$folder/pictures"
end=
while [ -z "$stop$end" ] && lives $writer; do
  now=$(size)
  same && [ -n "$now" ] || { end=${exitCodes.displayGone}; break; }
  video -f x11grab -framerate "$rate" -video_size "$now" -i ":$display" -threads 1 -filter_threads 1 \\
    -vf "scale=$width:$height:force_original_aspect_ratio=decrease,pad=$width:$height:-1:-1" \\
    -fps_mode vfr -pix_fmt yuv420p -f rawvideo pipe:1 >&3 3>&- &
  taker=$!
  read -r before rest </proc/uptime
  while [ -z "$stop" ] && lives $taker && lives $writer; do
    sleep 1
    read -r at rest </proc/uptime
    # After a pause the taker would make up for all pictures that it has missed.
    [ $((\${at%.*} - \${before%.*})) -lt 5 ] && same && [ "$(size)" = "$now" ] || kill $taker 2>/dev/null
    before=$at
  done
  lives $writer || kill -9 $taker 2>/dev/null
  kill $taker 2>/dev/null
  while lives $taker; do wait $taker; done
  wait $taker
  code=$?
  # The taker ends by itself with a code up to 128, or with 255. Other codes are signals.
  [ $code -le 128 ] || [ $code -eq 255 ] || end=${exitCodes.broken}
done
lives $writer || over=1
exec 3>&-
while lives $writer; do wait $writer; done
wait $writer
code=$?
rm -rf "$folder"
if [ -n "$stop" ]; then exit ${exitCodes.stopped}; fi
if [ -z "$over" ]; then exit $end; fi
[ $code -eq 0 ] || exit ${exitCodes.broken}
[ $(($(stat -c %s "$part") * 16)) -lt $((bytes * 15)) ] && exit ${exitCodes.seconds}
exit ${exitCodes.bytes}
`;

/** How much longer than its recording a recorder may run, for example when the display no longer answers. */
const graceMs = 60_000;

/** The computer starts a process with the same id only once. */
export function recordRequest(spec: RecorderSpec): StartProcess {
  const { id, display, width, height, framesPerSecond, maxSeconds, maxBytes } = spec;
  const numbers = [display, width, height, framesPerSecond, maxSeconds, maxBytes].map(String);
  return {
    processId: id,
    command: ['/bin/sh', '-c', recordScript, 'record', partPath(spec), ...numbers, `/tmp/.atrium/${id}`],
    timeoutMs: maxSeconds * 1_000 + graceMs,
  };
}

/**
 * Joins the fragments into a file with a known duration, in which players can seek, and prints the duration. If the
 * disk has no room for it, the fragmented file becomes the final one.
 */
const finishScript = `
stem=$1
part="$stem.part.mp4" file="$stem.mp4"
for program in ffmpeg ffprobe; do
  command -v $program >/dev/null || { echo "$program is missing" >&2; exit ${exitCodes.missingProgram}; }
done
renice -n 10 -p $$ >/dev/null 2>&1
umask 077
if [ ! -e "$file" ]; then
  [ -s "$part" ] || exit ${exitCodes.noFile}
  rm -f "$stem".*.tmp
  if ffmpeg -nostdin -v error -i "$part" -map 0:v:0 -c copy -movflags +faststart -f mp4 -y "$stem.$$.tmp"; then
    mv "$stem.$$.tmp" "$file" || exit ${exitCodes.broken}
  else
    rm -f "$stem.$$.tmp"
    mv "$part" "$file" || exit ${exitCodes.broken}
  fi
fi
rm -f "$part"
ffprobe -v error -show_entries format=duration -of csv=p=0 "$file" || exit ${exitCodes.noPicture}
`;

/** Enough for a file of a gigabyte on a busy disk. */
const finishMs = 15 * 60_000;

export function finishRequest(spec: Pick<RecorderSpec, 'id'>, processId: string): StartProcess {
  return { processId, command: ['/bin/sh', '-c', finishScript, 'finish', stemOf(spec)], timeoutMs: finishMs };
}
