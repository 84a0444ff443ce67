// What was published and what was run, in the order in which the database committed it.

/** A commit. Places are numbered in the order of commits, without ties; the time is the database's, in milliseconds. */
export interface Moment {
  readonly place: number
  readonly ms: number
}

/** A message whose transaction committed. */
export interface Commit {
  readonly id: string
  /** null: it belongs to nobody, and runs whenever it can. */
  readonly key: string | null
  /** When it had its key: of a message for later, that may be when its time has come. */
  readonly committed: Moment
  /** When its row went, and where to; null: it is still there. */
  readonly gone: { readonly at: Moment; readonly how: 'acked' | 'buried' } | null
}

/** `done`: the handler wanted it acknowledged. */
export type RunOutcome = 'done' | 'failed' | 'snoozed'

/** A handler that was called, as it wrote it down itself. */
export interface Run {
  readonly id: string
  readonly process: string
  /** By the clock of the process, which is the database's: they are on one machine. */
  readonly calledMs: number
  readonly started: Moment
  /** null: it never came to that. */
  readonly ended: { readonly at: Moment; readonly outcome: RunOutcome } | null
  /** The claim that it ran by, and how long that was good for, renewals included; null: there was none. */
  readonly lease: { readonly claimed: Moment; readonly untilMs: number } | null
  /** When the row was deleted in its name; null: it was not. */
  readonly accepted: Moment | null
}

/** A process that stood still, or was killed (`to` is null then). It was so in all of this time, and perhaps a little longer. */
export interface Absence {
  readonly process: string
  readonly from: Moment
  readonly to: Moment | null
}

/** What publishers were told of their own transactions. */
export interface Told {
  readonly committed: readonly string[]
  readonly rolledBack: readonly string[]
}

export interface History {
  readonly told: Told
  /** In the order of commits; within a transaction as they were published. */
  readonly commits: readonly Commit[]
  /** In the order of their starts. */
  readonly runs: readonly Run[]
  readonly absences: readonly Absence[]
}

/** What a queue promises beside one at a time and in order. */
export interface Promised {
  /** Ends of a run that let later messages of the key pass. None: a message that failed blocks its key. */
  readonly letsPass: readonly RunOutcome[]
  /** Whether messages may end as dead letters. */
  readonly mayDie: boolean
}

/**
 * - `lost`: a message that was committed, or whose publisher was told so, was not acknowledged, not exactly once, or not after a run.
 * - `dead`: it was given up.
 * - `invented`: a message was run without a claim, was run and never committed, or was there and rolled back.
 * - `disorder`: of two messages of a key the later one's accepted run came first.
 * - `overtaking`: a run started before every earlier message of its key was out of the way.
 * - `return`: a run started after one of a later message of its key had.
 * - `overlap`: two runs of a key at once.
 * - `late`: a handler was called when its lease had ended.
 */
export type Rule = 'lost' | 'dead' | 'invented' | 'disorder' | 'overtaking' | 'return' | 'overlap' | 'late'

export interface Violation {
  readonly rule: Rule
  readonly key: string | null
  readonly id: string
  readonly text: string
}

export interface Verdict {
  readonly violations: readonly Violation[]
  /** What would have been a violation, had its process not stood still past the end of its lease. */
  readonly excused: readonly Violation[]
}
