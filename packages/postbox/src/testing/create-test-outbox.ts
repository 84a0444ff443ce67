import { runnerPartsOf } from '../assemble-lifecycle.ts'
import type { Bodies, BodiesOf, QueueMap } from '../core/queues.ts'
import { assertOptions, assertValue, oneOf, type Shape, wholeNumber } from '../core/validate.ts'
import { createOutbox, type Outbox, type OutboxOptions } from '../outbox.ts'
import type { OutboxParts } from '../seam.ts'
import type { Delivering } from './delivering.ts'
import { endWithin } from './end-within.ts'
import { lookInto } from './look-into.ts'
import { loopMode } from './loop-mode.ts'
import { syncMode } from './sync-mode.ts'
import { assertGiven, disposed, isOutbox, partsOf, takeOver } from './take-over.ts'
import { createTestClock, type TestClock } from './test-clock.ts'
import type { TestOptions, TestOutbox } from './test-outbox.ts'
import { createTestStore, type TestStore } from './test-store.ts'
import { testHandle, testTransaction } from './test-transaction.ts'
import { travelTo } from './time-machine.ts'

/**
 * Takes an outbox over, with its publishers and subscribers, until the test outbox is disposed: its messages are kept in memory, and its
 * time is the test's. Given options, it makes one.
 *
 * @example
 * await using test = await createTestOutbox(outbox)
 * await test.transaction((tx) => outbox.publish(tx, 'orders', { orderId: 1 }))
 * expect(test.published('orders')).toMatchObject([{ body: { orderId: 1 } }])
 */
export async function createTestOutbox<B extends Bodies, Tx = unknown>(
  outbox: Outbox<B, Tx>,
  options?: TestOptions,
): Promise<TestOutbox<B, Tx>>
export async function createTestOutbox<const M extends QueueMap = QueueMap>(
  outboxOptions: OutboxOptions<M>,
  options?: TestOptions,
): Promise<TestOutbox<BodiesOf<M>>>
export async function createTestOutbox(
  given: Outbox | OutboxOptions,
  options?: TestOptions,
): Promise<TestOutbox> {
  assertGiven(given)
  assertOptions(options, optionShape, 'the options of the test outbox')
  const outbox = isOutbox(given) ? (given as Outbox) : createOutbox(given as OutboxOptions)
  const parts = partsOf(outbox)
  const clock = createTestClock((options?.now ?? new Date()).getTime())
  const store: TestStore = createTestStore({
    clock,
    deliver: (messages) => delivering.deliver(messages),
    arrived: (messages) => delivering.arrived(messages),
  })
  const giveBack = takeOver(outbox, {
    handleOf: (tx) => testHandle(tx, store.database),
    database: store.database,
    listenDatabase: () => store.memory,
    opener: async () => store.opener,
    internals: { clock, mayBeEmpty: true, nextEnd: () => store.memory.nextEnd },
  })
  const delivering: Delivering =
    options?.mode === 'loop' ? loopMode(outbox) : syncMode(syncParts(parts, { store, clock }), outbox.stop)
  await delivering.begin()
  return assemble(outbox, { parts, clock, store, delivering, giveBack })
}

const optionShape: Shape = {
  mode: oneOf('sync', 'loop'),
  now: (value) => (value instanceof Date && !Number.isNaN(value.getTime()) ? null : 'to be a valid Date'),
}

interface TestParts {
  readonly parts: OutboxParts
  readonly clock: TestClock
  readonly store: TestStore
  readonly delivering: Delivering
  giveBack(): void
}

function syncParts(parts: OutboxParts, { store, clock }: Pick<TestParts, 'store' | 'clock'>) {
  return { memory: store.memory, clock, registry: parts.registry, runner: runnerPartsOf(parts)() }
}

function assemble(outbox: Outbox, { parts, clock, store, delivering, giveBack }: TestParts): TestOutbox {
  const activity = (): number => store.statements + clock.sleeps
  const travel = { clock, memory: store.memory, activity, arrive: () => delivering.arrive() }
  const end = async (): Promise<void> => {
    await endWithin(delivering.end(), { clock, activity })
    giveBack()
  }
  let ending: Promise<void> | null = null
  const dispose = (): Promise<void> => {
    ending ??= end()
    return ending
  }
  const assertInPlace = (): void => {
    if (ending !== null) throw disposed()
  }
  const { feed, ...looks } = lookInto(parts, store)
  return {
    outbox,
    ...looks,
    async feed(...given) {
      assertInPlace()
      return feed(...given)
    },
    async transaction(work) {
      assertInPlace()
      const transaction = store.memory.begin()
      const value = await rolledBackWhenThrown(transaction, async () =>
        work(testTransaction(transaction, store.database)),
      )
      if (!transaction.isOpen) return value
      const { arrived } = store.during(() => transaction.commit())
      await delivering.deliver(arrived)
      return value
    },
    now: () => new Date(clock.now()),
    async advance(ms) {
      assertInPlace()
      assertValue('OUTBOX_INVALID_OPTION', { label: 'ms', check: wholeNumber(0), value: ms })
      await travelTo(clock.now() + ms, travel)
    },
    async drain() {
      assertInPlace()
      return delivering.drain()
    },
    dispose,
    [Symbol.asyncDispose]: dispose,
  }
}

async function rolledBackWhenThrown<T>(
  transaction: { rollback(): void },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    transaction.rollback()
    throw error
  }
}
