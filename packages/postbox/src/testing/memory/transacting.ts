import { sqlState } from '../../core/sql-state.ts'
import type {
  cancelTransaction,
  doomTransaction,
  fenceTransaction,
  readTransaction,
  readTransactionStatus,
  restorePatience,
} from '../../sql/fence-transaction.ts'
import { heldBy } from './claiming.ts'
import type { Operation } from './operation.ts'
import { databaseError, putMessage, xidOf } from './transaction.ts'

/** Written as they are: what a transaction has written, nobody else can. */
export const fence: Operation<typeof fenceTransaction> = ({ tx }, fences) => {
  const held = [...heldBy(tx, fences).values()].sort((a, b) => a.message.seq - b.message.seq)
  for (const { message } of held) putMessage(tx, message)
  return held.map(({ message }) => ({
    seq: String(message.seq),
    xid: String(xidOf(tx)),
    pid: '0',
    patience: '0',
  }))
}

export const current: Operation<() => typeof readTransaction> = ({ tx }) => [{ xid: String(xidOf(tx)) }]

/** Nobody waits by the clock here. */
export const patienceOf: Operation<typeof restorePatience> = (_, { patience }) => [{ patience }]

/** No COMMIT is ever lost here: nobody asks. */
export const statusOf: Operation<typeof readTransactionStatus> = () => [{ status: null }]

/** No statement takes any time. */
export const cancel: Operation<typeof cancelTransaction> = () => []

export const doom: Operation<() => typeof doomTransaction> = () => {
  throw databaseError(sqlState.queryCanceled, 'the outbox has given this transaction up')
}
