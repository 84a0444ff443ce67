import type { Executor } from '../adapters/executor.ts'
import type { Statement } from '../sql/statement.ts'
import { before } from './deadline.ts'

const anyAnswer: Statement = { name: 'ping', text: 'select 1 as pong', values: [] }

/** Whether the database answers in time. */
export async function answers(executor: Executor, timeoutMs: number): Promise<boolean> {
  try {
    await before(executor.run(anyAnswer), timeoutMs, () => new Error('no answer'))
    return true
  } catch {
    return false
  }
}
