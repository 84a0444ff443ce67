import type { ExpectedIndex, ExpectedTable, PrimaryKey, StorageRule } from '../core/schema-shape.ts'
import { deadColumns, handledColumns, messageColumns, metaColumns, queueColumns } from './expected-columns.ts'
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
import type { IndexName, Names } from './names.ts'
import { createMeta } from './schema-script.ts'

export interface ExpectedParts {
  readonly autovacuum: boolean
  readonly deadLetters: 'table' | 'discard'
}

/** What an outbox with these options works on, all steps applied. The version's table comes last: its rows are written when all else is there. */
export function expectedSchema(
  names: Names,
  { autovacuum, deadLetters }: ExpectedParts,
): readonly ExpectedTable[] {
  const dead = deadLetters === 'table' ? [deadTable(names)] : []
  return [
    messagesTable(names, autovacuum),
    ...dead,
    handledTable(names),
    queuesTable(names),
    metaTable(names),
  ]
}

const plain = { indexes: [], checks: [], storage: [], onlyPublished: [], holdsSteps: false } as const

function messagesTable(names: Names, autovacuum: boolean): ExpectedTable {
  const create = createMessageIndexes(names)
  const index = (name: keyof typeof create, keys: string, predicate: string): ExpectedIndex =>
    expectedIndex(names, { name, keys, predicate, create: create[name] })
  return {
    ...plain,
    name: names.messages,
    relation: names.plain.table,
    columns: messageColumns(names),
    primaryKey: primaryKey(names, 'primary', 'seq'),
    indexes: [
      index('ready', 'queue seq', '(due_at IS NULL)'),
      index('due', 'queue due_at seq', '(due_at IS NOT NULL)'),
      {
        ...index('timer', 'queue timer_id', '((timer_id IS NOT NULL) AND (failed_at IS NULL))'),
        unique: true,
      },
      index('key', 'queue key seq', '((key IS NOT NULL) AND (failed_at IS NULL))'),
      index('failed', 'id', '(failed_at IS NOT NULL)'),
    ],
    checks: [
      {
        name: names.index.lease,
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
      ...Object.values(create),
    ],
  }
}

function deadTable(names: Names): ExpectedTable {
  const create = { ...createDeadIndexes(names), deadFailed: createDeadFailedIndex(names) }
  const index = (name: keyof typeof create, keys: string): ExpectedIndex =>
    expectedIndex(names, { name, keys, predicate: null, create: create[name] })
  return {
    ...plain,
    name: names.dead,
    relation: names.plain.dead,
    columns: deadColumns(names),
    primaryKey: primaryKey(names, 'deadPrimary', 'dead_seq'),
    indexes: [
      index('deadId', 'id'),
      index('deadQueue', 'queue failed_at'),
      index('deadFailed', 'failed_at dead_seq'),
    ],
    create: [createDead(names), ...Object.values(create)],
  }
}

function handledTable(names: Names): ExpectedTable {
  return {
    ...plain,
    name: names.handled,
    relation: names.plain.handled,
    columns: handledColumns,
    primaryKey: primaryKey(names, 'handledPrimary', 'consumer id'),
    create: [createHandled(names)],
  }
}

function queuesTable(names: Names): ExpectedTable {
  return {
    ...plain,
    name: names.queues,
    relation: names.plain.queues,
    columns: queueColumns,
    primaryKey: primaryKey(names, 'queuesPrimary', 'name'),
    create: [createQueues(names)],
  }
}

function metaTable(names: Names): ExpectedTable {
  return {
    ...plain,
    name: names.meta,
    relation: names.plain.meta,
    columns: metaColumns,
    primaryKey: primaryKey(names, 'metaPrimary', 'version'),
    holdsSteps: true,
    create: [createMeta(names)],
  }
}

interface IndexParts {
  readonly name: IndexName
  /** Columns, with a space between. */
  readonly keys: string
  readonly predicate: string | null
  readonly create: string
}

function expectedIndex(names: Names, { name, keys, predicate, create }: IndexParts): ExpectedIndex {
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
