import type { Screen } from '../../hostClient.ts';
import type { Size } from '../../processes/records.ts';
import type { OutputRecord } from '../../types.ts';

/** What a holder asks of the thread that draws its screens, one at a time. */
export type ScreenRequest = { screenId: number } & (
  | { do: 'open'; from: Size | Screen }
  | { do: 'take'; records: OutputRecord[] }
  | { do: 'skipTo'; position: number; size: Size | undefined }
  | { do: 'show' }
  | { do: 'dispose' }
);

export interface ScreenState {
  readTo: number;
  cells: number;
  /** Where that was asked for. */
  screen?: Screen;
}

export type ScreenAnswer = ScreenState | { failed: string };
