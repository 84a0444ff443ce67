import { amongSeqs, type Fence, fenceArrays } from './fence.ts'
import type { Names } from './names.ts'
import type { NoRow, Statement } from './statement.ts'

export interface FencedRow {
  readonly seq: string
  /** The transaction that has them now, and the process that serves it. */
  readonly xid: string
  readonly pid: string
  /** How long it waits for a lock, as the application has set it. */
  readonly patience: string
}

/**
 * Locks messages whose handler is about to work in this very transaction: nobody else can claim them until it ends, not even after their lease has ended, because
 * claims step over what is locked; and if the process dies, so does the lock. Fenced: only the holder of the lease gets them.
 * Returns the seqs locked; one that is missing had lost its lease.
 */
export function fenceTransaction(
  names: Names,
  fences: readonly Fence[],
): Statement<FencedRow, readonly Fence[]> {
  return {
    name: 'fence_transaction',
    text: `
select m.seq::text as seq,
       pg_current_xact_id()::text as xid,
       pg_backend_pid()::text as pid,
       current_setting('lock_timeout') as patience
  from unnest($1::text::bigint[], $2::text::uuid[]) as s(seq, token)
  join ${names.messages} as m
    on m.seq = s.seq
   and m.lease_token = s.token
   and ${amongSeqs}
 order by m.seq
   for update of m`,
    values: fenceArrays(fences),
    input: fences,
  }
}

/** The transaction that a statement is in: of its own, where the work has ended the one that it was given. */
export const readTransaction: Statement<{ readonly xid: string }> = {
  name: 'read_transaction',
  text: 'select pg_current_xact_id()::text as xid',
  values: [],
}

/** Waits for locks again as long as it did before one of our statements was impatient (see `patience` in take-names.ts). */
export function restorePatience(
  patience: string,
): Statement<{ readonly patience: string }, { readonly patience: string }> {
  return {
    name: 'restore_patience',
    text: `select set_config('lock_timeout', $1::text, true) as patience`,
    values: [patience],
    input: { patience },
  }
}

/** Whether a transaction whose COMMIT was not answered was committed: 'committed', 'aborted', 'in progress', or null where nobody remembers. */
export function readTransactionStatus(
  xid: string,
): Statement<{ readonly status: string | null }, { readonly xid: string }> {
  return {
    name: 'read_transaction_status',
    text: 'select pg_xact_status($1::text::xid8) as status',
    values: [xid],
    input: { xid },
  }
}

/** Ends the statement that a transaction is at. Only that transaction's: its process may be serving another by now. */
export function cancelTransaction({
  xid,
  pid,
}: Pick<FencedRow, 'xid' | 'pid'>): Statement<{ readonly cancelled: string }> {
  return {
    name: 'cancel_transaction',
    text: `
select pg_cancel_backend(a.pid)::text as cancelled
  from pg_stat_activity as a
 where a.pid = $1::text::int
   and a.backend_xid = $2::text::xid8::xid`,
    values: [pid, xid],
    input: { xid, pid },
  }
}

/**
 * Fails, and the transaction with it: its locks are gone at once, and whatever its handler still does in it is refused. A ROLLBACK could be followed by
 * statements that are committed one by one. Below a savepoint only that fails, and the locks stay until the work ends.
 */
export const doomTransaction: Statement<NoRow> = {
  name: 'doom_transaction',
  text: `do $$ begin raise exception 'the outbox has given this transaction up' using errcode = 'query_canceled'; end $$`,
  values: [],
}
