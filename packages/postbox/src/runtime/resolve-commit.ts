import { isDataError } from '../core/failed-statement.ts'
import { reconnectDelayMs } from '../core/pacing.ts'
import { cancelTransaction, type FencedRow, readTransactionStatus } from '../sql/fence-transaction.ts'
import type { TransactParts } from './transaction-run.ts'

type ResolveParts = Pick<TransactParts, 'lane' | 'clock' | 'giveUp'>

/**
 * What became of a transaction whose COMMIT was not answered, as the database remembers it. Asked until it is over, on any connection that can be had.
 * 'unknown': nobody can tell, because nobody waits for it any longer, or another server answers, which never heard of it.
 */
export async function resolveCommit(
  xid: string,
  { lane, clock, giveUp }: ResolveParts,
): Promise<'committed' | 'aborted' | 'unknown'> {
  for (let tries = 1; ; tries++) {
    try {
      const [row] = await lane.run(readTransactionStatus(xid))
      const status = row?.status ?? null
      if (status === 'committed' || status === 'aborted') return status
      if (status !== 'in progress') return 'unknown'
    } catch (error) {
      // "Is in the future": a standby that had not come so far took over.
      if (isDataError(error)) return 'unknown'
    }
    if (giveUp.aborted) return 'unknown'
    await clock.sleep(reconnectDelayMs(tries, Math.random()), giveUp)
  }
}

/**
 * What became of a transaction that failed, and whether it has let its locks go: asked for as long as a statement may take. What it is at is cancelled, since nobody waits for it any more; each time anew,
 * because a statement may still have been on its way.
 */
export async function untilEnded(
  fenced: FencedRow,
  { statementTimeoutMs, ...parts }: ResolveParts & Pick<TransactParts, 'statementTimeoutMs'>,
): Promise<string | null> {
  const { lane, clock, giveUp } = parts
  const deadline = clock.now() + statementTimeoutMs
  for (let tries = 1; ; tries++) {
    const status = await lane.run(readTransactionStatus(fenced.xid)).then(
      ([row]) => row?.status ?? null,
      () => 'in progress',
    )
    if (status !== 'in progress' || giveUp.aborted || clock.now() >= deadline) return status
    await lane.run(cancelTransaction(fenced)).catch(() => {})
    await clock.sleep(reconnectDelayMs(tries, Math.random()), giveUp)
  }
}
