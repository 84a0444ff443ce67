// Shared by everybody who publishes to these queues or subscribes to them: the order is the queue's.
import { defineQueues, typed } from 'postbox'

export interface AccountEvent {
  readonly account: string
  readonly kind: 'opened' | 'renamed' | 'closed'
  readonly name?: string
}

export const queues = defineQueues({
  accounts: { body: typed<AccountEvent>(), order: 'key' },
})
