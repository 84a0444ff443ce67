/**
 * Where claims of a queue's fresh rows begin. Rows get their seq before they commit, so a row can appear *below* one that was
 * already seen: a cursor that follows what was seen would lose it until the next sweep (26 % of rows, under 24 publishers).
 *
 * A mark may be passed once every transaction that could still hold a lower seq has ended, and a claim that began after that has looked
 * up to the mark. Which transactions: those older than the claim that set the mark, told by that claim's **own xid**. Not by
 * its snapshot's xmax, which is the latest *completed* transaction + 1: one that already runs may be above it.
 */
export interface Cursor {
  /** Claims take rows with a seq above this. */
  readonly after: bigint
  /** Marks not yet passed, oldest first. */
  readonly marks: readonly Mark[]
}

interface Mark {
  readonly seq: bigint
  /** The xid of the claim that set it. */
  readonly own: bigint
}

/** What one claim found out about a queue. */
export interface Look {
  /** The highest seq it returned; null: none. */
  readonly last: bigint | null
  /** It returned as many rows as it was allowed to: there may be more behind them. */
  readonly isFull: boolean
  readonly own: bigint
  /** Below it, every transaction that could hold a lower seq has ended. */
  readonly horizon: bigint
  /** The sequence's value at the claim before this one, hence read before this one's snapshot. */
  readonly topBefore: bigint
}

export const fromStart: Cursor = { after: 0n, marks: [] }

// One is set by each claim and passed by one of the next; more only pile up while a transaction is waited for.
const mostMarks = 32

export function advance(cursor: Cursor, look: Look): Cursor {
  const reached = (seq: bigint): boolean => !look.isFull || (look.last !== null && look.last >= seq)
  const passed = cursor.marks.filter((mark) => look.horizon >= mark.own && reached(mark.seq))
  const after = highest(passed, cursor.after)
  const mark = markOf(look)
  const waiting = cursor.marks.filter(({ seq }) => seq > after).slice(0, mostMarks - 1)
  return { after, marks: mark > after ? [...waiting, { seq: mark, own: look.own }] : waiting }
}

/**
 * A full claim knows nothing of what lies behind its last row. One that was not full has seen all there was, up to the sequence's value
 * of the claim before: a process whose peers take everything must move on, too, or it walks over their dead rows (69 ms against 1).
 */
function markOf({ last, isFull, topBefore }: Look): bigint {
  const seen = last ?? 0n
  return isFull || seen > topBefore ? seen : topBefore
}

/** What one sweep found out about a queue. */
export interface SweepLook {
  /** The lowest seq there is, leased or not; null: none. */
  readonly lowest: bigint | null
  readonly own: bigint
  readonly horizon: bigint
  readonly topBefore: bigint
}

/**
 * Where sweeps begin: below it no row can live. The same rule with less hope: no transaction is given up on, and the mark is the
 * lowest row that lives. (Between a row's nextval and its transaction's xid are microseconds in which nobody can know of it: every tenth
 * sweep begins at zero.) Without it a sweep walks every dead row since the last vacuum (85 ms for a million, 2 from the end).
 */
export function raiseFloor(floor: Cursor, { lowest, own, horizon, topBefore }: SweepLook): Cursor {
  const last = lowest === null ? topBefore : lowest - 1n
  // A row below it after all, put there by somebody's own SQL and found by a sweep from zero: its next holder may die.
  if (lowest !== null && last < floor.after) return { after: last, marks: [] }
  const passed = floor.marks.filter((mark) => horizon >= mark.own && mark.seq <= last)
  const after = highest(passed, floor.after)
  const waiting = floor.marks.filter(({ seq }) => seq > after && seq <= last).slice(0, mostMarks - 1)
  return { after, marks: last > after ? [...waiting, { seq: last, own }] : waiting }
}

function highest(marks: readonly Mark[], least: bigint): bigint {
  let most = least
  for (const { seq } of marks) if (seq > most) most = seq
  return most
}
