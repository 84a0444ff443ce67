import type { ExpectedIndex, ExpectedTable, PrimaryKey, StorageRule } from '../core/schema-shape.ts'
import type { StorageModes } from '../core/storage-modes.ts'
import {
  deadColumns,
  deliveredColumns,
  handledColumns,
  messageColumns,
  metaColumns,
  operationColumns,
  queueColumns,
} from './expected-columns.ts'
import {
  createDead,
  createDeadIndexes,
  createHandled,
  createMessageIndexes,
  createMessages,
  createQueues,
  leaseCheck,
  storageParameters,
} from './migrations/0001-messages.ts'
import { addFiredTimerId } from './migrations/0002-timer-names.ts'
import { createDeadFailedIndex } from './migrations/0003-dead-letter-order.ts'
import {
  createDelivered,
  createDeliveredIndexes,
  createOperations,
  createOperationsIndex,
} from './migrations/0004-delivered-and-operations.ts'
import { createFailedAtIndex } from './migrations/0005-failed-order.ts'
import { createFailedQueueIndex } from './migrations/0006-failed-queue-order.ts'
import { createHandledAtIndex } from './migrations/0007-handled-order.ts'
import { addOrderColumns, createKeyIndex, createParkedIndex } from './migrations/0009-order.ts'
import { addResumed } from './migrations/0010-resumed-queues.ts'
import type { IndexName, Names } from './names.ts'
import { createMeta } from './schema-script.ts'

export interface ExpectedParts extends StorageModes {
  readonly autovacuum: boolean
}

/** What an outbox with these options works on, all steps applied. The version's table comes last: its rows are written when all else is there. */
export function expectedSchema(
  names: Names,
  { autovacuum, deadLetters, delivered }: ExpectedParts,
): readonly ExpectedTable[] {
  return [
    messagesTable(names, autovacuum),
    // Those that lie in place are read together with those that were moved, by the same statements.
    ...(deadLetters === 'discard' ? [] : [deadTable(names)]),
    ...(delivered === 'table' ? [deliveredTable(names)] : []),
    handledTable(names),
    queuesTable(names),
    operationsTable(names),
    metaTable(names),
  ]
}

const plain = { indexes: [], checks: [], storage: [], onlyPublished: [], holdsSteps: false } as const

function messagesTable(names: Names, autovacuum: boolean): ExpectedTable {
  const create = {
    ...createMessageIndexes(names),
    table_key: createKeyIndex(names),
    table_failed_at: createFailedAtIndex(names),
    table_failed_queue: createFailedQueueIndex(names),
    table_parked: createParkedIndex(names),
  }
  const index = (name: keyof typeof create, keys: string, predicate: string): ExpectedIndex =>
    expectedIndex(names, name, { keys, predicate, create: create[name] })
  return {
    ...plain,
    name: names.messages,
    relation: names.plain.table,
    columns: messageColumns(names),
    primaryKey: primaryKey(names, 'table_pkey', 'seq'),
    indexes: [
      index('table_ready', 'queue seq', '(due_at IS NULL)'),
      index('table_due', 'queue due_at seq', '(due_at IS NOT NULL)'),
      {
        ...index('table_timer', 'queue timer_id', '((timer_id IS NOT NULL) AND (failed_at IS NULL))'),
        unique: true,
      },
      index(
        'table_key',
        'queue key seq',
        '((key IS NOT NULL) AND ((failed_at IS NULL) OR (parked_at IS NOT NULL)))',
      ),
      index('table_failed', 'id', '(failed_at IS NOT NULL)'),
      index('table_failed_at', 'failed_at seq', '(failed_at IS NOT NULL)'),
      index('table_failed_queue', 'queue failed_at seq', '(failed_at IS NOT NULL)'),
      index('table_parked', 'queue key seq', '(parked_at IS NOT NULL)'),
    ],
    checks: [
      {
        name: names.index.table_lease,
        predicate: '((lease_token IS NULL) = (leased_until IS NULL))',
        condition: leaseCheck,
        // Half a lease never ends: its row is free again.
        prepare: `update ${names.messages} set lease_token = null, leased_until = null where not (${leaseCheck})`,
      },
    ],
    storage: storageRules(autovacuum),
    onlyPublished: ['id', 'queue', 'key', 'body', 'headers', 'created_at'],
    create: [
      createMessages(names, { autovacuum: autovacuum ? {} : false }),
      addFiredTimerId(names),
      addOrderColumns(names),
      ...Object.values(create),
    ],
  }
}

function deadTable(names: Names): ExpectedTable {
  const create = { ...createDeadIndexes(names), dead_failed: createDeadFailedIndex(names) }
  const index = (name: keyof typeof create, keys: string): ExpectedIndex =>
    expectedIndex(names, name, { keys, predicate: null, create: create[name] })
  return {
    ...plain,
    name: names.dead,
    relation: names.plain.dead,
    columns: deadColumns(names),
    primaryKey: primaryKey(names, 'dead_pkey', 'dead_seq'),
    indexes: [
      index('dead_id', 'id'),
      index('dead_queue', 'queue failed_at'),
      index('dead_failed', 'failed_at dead_seq'),
    ],
    create: [createDead(names), ...Object.values(create)],
  }
}

function deliveredTable(names: Names): ExpectedTable {
  const create = createDeliveredIndexes(names)
  const index = (name: keyof typeof create, keys: string): ExpectedIndex =>
    expectedIndex(names, name, { keys, predicate: null, create: create[name] })
  return {
    ...plain,
    name: names.delivered,
    relation: names.plain.delivered,
    columns: deliveredColumns(names),
    primaryKey: primaryKey(names, 'delivered_pkey', 'delivered_seq'),
    indexes: [index('delivered_id', 'id'), index('delivered_at', 'delivered_at delivered_seq')],
    create: [createDelivered(names), ...Object.values(create)],
  }
}

function handledTable(names: Names): ExpectedTable {
  const create = createHandledAtIndex(names)
  return {
    ...plain,
    name: names.handled,
    relation: names.plain.handled,
    columns: handledColumns,
    primaryKey: primaryKey(names, 'handled_pkey', 'consumer id'),
    indexes: [expectedIndex(names, 'handled_at', { keys: 'handled_at', predicate: null, create })],
    create: [createHandled(names), create],
  }
}

function operationsTable(names: Names): ExpectedTable {
  const create = createOperationsIndex(names)
  const keys = 'started_at operation_id'
  return {
    ...plain,
    name: names.operations,
    relation: names.plain.operations,
    columns: operationColumns,
    primaryKey: primaryKey(names, 'operations_pkey', 'operation_id'),
    indexes: [expectedIndex(names, 'operations_started', { keys, predicate: null, create })],
    create: [createOperations(names), create],
  }
}

function queuesTable(names: Names): ExpectedTable {
  return {
    ...plain,
    name: names.queues,
    relation: names.plain.queues,
    columns: queueColumns,
    primaryKey: primaryKey(names, 'queues_pkey', 'name'),
    create: [createQueues(names), addResumed(names)],
  }
}

function metaTable(names: Names): ExpectedTable {
  return {
    ...plain,
    name: names.meta,
    relation: names.plain.meta,
    columns: metaColumns,
    primaryKey: primaryKey(names, 'meta_pkey', 'version'),
    holdsSteps: true,
    create: [createMeta(names)],
  }
}

interface IndexParts {
  /** Columns, with a space between. */
  readonly keys: string
  readonly predicate: string | null
  readonly create: string
}

function expectedIndex(
  names: Names,
  name: IndexName,
  { keys, predicate, create }: IndexParts,
): ExpectedIndex {
  const complete = `${names.schema}.${names.index[name]}`
  return { name: complete, unique: false, keys: keys.split(' '), predicate, create }
}

function primaryKey(names: Names, key: IndexName, keys: string): PrimaryKey {
  const name = names.index[key]
  return { name, index: `${names.schema}.${name}`, keys: keys.split(' ') }
}

/** Thresholds are the owner's to choose, and costs are the server's to bear; that vacuum comes by number of rows is what we ask for. */
function storageRules(autovacuum: boolean): readonly StorageRule[] {
  const rules = Object.entries(storageParameters(autovacuum ? {} : false)).flatMap(([name, value]) => {
    if (/_cost_/.test(name)) return []
    return [{ kind: /_threshold$/.test(name) ? 'set' : 'equal', name, value } as const]
  })
  const on = ['autovacuum_enabled', 'toast.autovacuum_enabled']
  const enabled = on.map((name) => ({ kind: 'not_off', name, value: 'on' }) as const)
  return autovacuum ? [...rules, ...enabled] : rules
}
