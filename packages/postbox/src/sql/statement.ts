/**
 * A text, its values and the rows it returns. `name` is for logs and tests, and a part of the name by which a session of ours keeps the statement
 * parsed (`keptText`). No plan is kept, by anybody: one that was made on a table of a page or none took 1,400 ms for a claim on 300,000 rows, and 65 ms
 * for the delete of one, where one made for the table as it is takes 3 and 0.1 (docs/decisions/0042).
 */
export interface Statement<Row = Record<string, unknown>, Input = unknown> {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
  /** The same as `text`, for a session that sends it again and again: parsed once, planned anew each time (`planned-anew.ts`). Absent: not worth it. */
  readonly keptText?: string
  /** What it was made of: what a store goes by that reads no SQL (testing/memory). */
  readonly input?: Input
  /** Carries the row type; never present at run time. */
  readonly row?: Row
}

/** Every statement ends in what it changed; this is for the few that change nothing (DDL, locks). */
export type NoRow = Record<never, never>
