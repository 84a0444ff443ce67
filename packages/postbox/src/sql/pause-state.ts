import { dateFrom } from './columns.ts'

/** How it stands with a queue since somebody paused or resumed it. */
export interface Pause {
  readonly isPaused: boolean
  /** Who paused it or, when it is not paused, who resumed it; null: the table does not say. */
  readonly by: string | null
  /** Since when, by the database's clock. */
  readonly at: Date
  /** Nobody paused it: it is in the order of its keys, and whoever asked has it without. Nothing of it may be claimed by him. */
  readonly isMismatch?: true
}

/** A row of the queues, `q`, says that it is in the order of its keys. */
export function isInOrder(q: string): string {
  return `${q}.message_order = 'key'`
}

/**
 * The state of a row of the queues, as one text: claims answer with a column for each of their members in every message's row. Null: nobody
 * has ever paused it. `q` is the row's alias. For whoever has the queue without order: as one that is paused, if the condition `mismatch` holds.
 */
export function pauseText(q: string, mismatch?: string): string {
  const mismatching = `
           when ${mismatch}
           then json_build_object('paused', true, 'at', '0', 'by', null, 'mismatch', true)`
  return `(case${mismatch === undefined ? '' : mismatching}
           when ${q}.paused_at is not null
           then json_build_object('paused', true, 'at', (extract(epoch from ${q}.paused_at) * 1000)::text, 'by', ${q}.paused_by)
           when ${q}.resumed_at is not null
           then json_build_object('paused', false, 'at', (extract(epoch from ${q}.resumed_at) * 1000)::text, 'by', ${q}.resumed_by)
         end)::text`
}

export function pauseFrom(text: string | null): Pause | null {
  if (text === null) return null
  const { paused, at, by, mismatch }: PauseJson = JSON.parse(text)
  const pause = { isPaused: paused, by, at: dateFrom(at) }
  return mismatch === true ? { ...pause, isMismatch: true } : pause
}

interface PauseJson {
  readonly paused: boolean
  readonly at: string
  readonly by: string | null
  readonly mismatch?: boolean
}
