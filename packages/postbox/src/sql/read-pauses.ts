import type { Names } from './names.ts'
import { isInOrder, pauseText } from './pause-state.ts'
import type { Statement } from './statement.ts'

export interface AskedPauses {
  readonly queues: readonly string[]
  /** Those that whoever asks has without order. */
  readonly unordered: readonly string[]
}

export interface PauseRow {
  readonly queue: string
  /** See `pauseFrom`. */
  readonly pause: string | null
}

/** How it stands with queues: a row for each that is asked for. The table has a row for each queue that was ever paused. */
export function readPauses(
  names: Names,
  queues: readonly string[],
  unordered: readonly string[] = [],
): Statement<PauseRow, AskedPauses> {
  const mismatch = `${isInOrder('q')} and q.name in (select jsonb_array_elements_text($2::text::jsonb))`
  return {
    name: 'read_pauses',
    text: `
select w.queue, ${pauseText('q', mismatch)} as pause
  from jsonb_array_elements_text($1::text::jsonb) as w(queue)
  left join ${names.queues} as q
    on q.name = w.queue`,
    values: [JSON.stringify(queues), JSON.stringify(unordered)],
    input: { queues, unordered },
  }
}
