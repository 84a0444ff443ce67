import type { OutboxEvent } from './events.ts'
import type { LogLevel } from './log.ts'
import { warningCatalogue } from './warning-catalogue.ts'

type Kind = OutboxEvent['kind']
type EventOf<K extends Kind> = Extract<OutboxEvent, { kind: K }>

/** How an event is printed, and what it means. The pages of docs/reference are made of it. */
export interface Printed<E> {
  /** null: not logged. What goes well is not, nor what is logged with the event that follows from it. */
  readonly level: LogLevel | null | Depends<E>
  readonly message: string | ((event: E) => string)
  /** When it comes. */
  readonly when: string
  /** What each of its members says: one without an explanation does not compile. */
  readonly fields: { readonly [Field in Exclude<keyof E, 'kind'>]-?: string }
}

/** A level that depends on what happened, and how that is said in the docs. */
interface Depends<E> {
  readonly of: (event: E) => LogLevel | null
  readonly says: string
}

const ofMessage = {
  queue: 'The queue.',
  handler: 'The name of the subscription.',
  id: 'The id of the message.',
  seq: 'Its place in the table.',
  attempt: 'Which run this is: 1 is the first.',
  deliveries:
    'How often the message was delivered, this time included; of one that was not run any more, without.',
}
const durationMs = 'How long the handler ran. Null: it did not run.'
const error = 'What was thrown.'

/** Every kind of event. The log is the stream of events, printed by this table (event-log.ts). */
export const eventCatalogue: { readonly [K in Kind]: Printed<EventOf<K>> } = {
  published: {
    level: null,
    message: 'published',
    when: 'The insert of a publish has been executed; its transaction may still be rolled back. Also when the insert failed. Not for follow-on messages: `acked` of their message counts them (`followOns`).',
    fields: {
      queue: 'The queue.',
      count: 'Rows that were written: 0 when a waiting timer was kept, and when it failed.',
      bytes: 'The size of the bodies.',
      durationMs: 'How long the statement took.',
      error: 'Why it failed; absent when it did not. The caller gets it, too.',
    },
  },
  claimed: {
    level: null,
    message: 'claimed',
    when: 'A claim has ended: once for each queue that it asked for, those with nothing to claim included.',
    fields: {
      queue: 'The queue.',
      handler: 'The name of the subscription.',
      count: 'Messages that were claimed.',
    },
  },
  dispatched: {
    level: { of: ({ isSuspect }) => (isSuspect ? 'warn' : null), says: 'warn of a suspect' },
    message: 'run alone: an earlier delivery ended without an outcome',
    when: 'A message is about to be given to its handler.',
    fields: {
      ...ofMessage,
      bytes: 'The size of the body.',
      isSuspect:
        'An earlier delivery of it ended without an outcome (its process died, or lost the lease), so it is run alone. When the process dies, this is the last that its log says, and names who was at work.',
    },
  },
  acked: {
    level: null,
    message: 'acknowledged',
    when: 'A message is done, and its row deleted.',
    fields: {
      ...ofMessage,
      durationMs,
      followOns:
        'Messages that its handler published with it; those that met a waiting timer are among them.',
    },
  },
  retried: {
    level: 'warn',
    message: (event) =>
      event.error === undefined ? 'handler asked for another run' : 'handler failed, message will be retried',
    when: 'A run failed, or its handler asked for another; the row waits for it.',
    fields: {
      ...ofMessage,
      durationMs,
      delayMs: 'How long until the next run.',
      error: 'What was thrown, or given to `context.retry`.',
    },
  },
  snoozed: {
    level: null,
    message: 'snoozed',
    when: 'A handler put the message back for later; the row waits.',
    fields: { ...ofMessage, durationMs, delayMs: 'How long until it is delivered again.' },
  },
  released: {
    level: null,
    message: 'released',
    when: 'A message was given back, as if it had not been claimed: it was not started, or a stop interrupted it.',
    fields: { ...ofMessage, durationMs },
  },
  dead: {
    level: 'error',
    message: ({ isParked }) =>
      isParked
        ? 'message is dead, and its key waits until somebody decides'
        : 'message is dead: it is delivered no more',
    when: 'A message was given up, and that is written. An alert needs nothing else.',
    fields: {
      ...ofMessage,
      durationMs,
      reason: 'Why it was given up.',
      attempts: 'Runs that failed.',
      error: 'What was thrown last, or why its handler rejected it.',
      key: 'The key of the message, or null.',
      isParked:
        'It holds its key, in an ordered queue: what comes behind it waits until somebody resumes or skips the key (`outbox.keys`).',
      headers: 'Its headers. The log has their names only: values may be secret.',
      type: 'The header `type`, or null.',
      source: 'The header `source`, or null.',
      target: 'Where it was to go: the header `target`, else the queue.',
    },
  },
  dlq_written: {
    level: {
      of: ({ isQuarantined }) => (isQuarantined ? 'warn' : null),
      says: 'warn when quarantined',
    },
    message: 'the dead letters refused a message: it stays in the table of messages',
    when: 'A dead message was kept, to be looked at and replayed.',
    fields: {
      ...ofMessage,
      reason: 'Why it was given up.',
      isQuarantined:
        'The dead letters refused it: it stays in the table of messages, and is delivered no more.',
    },
  },
  lease_lost: {
    level: 'warn',
    message: leaseLostText,
    when: 'A message was no longer ours when its end was to be written, or while its handler ran. Nothing is written for it; somebody else has it.',
    fields: {
      ...ofMessage,
      durationMs: 'How long the handler ran. Null: it did not run, or still runs.',
      phase:
        'What could not be written: its end (`terminal`) or a retry (`retry`). Or nothing yet (`running`): its handler is told by its signal.',
      mayHaveLanded: 'It may have been written after all: the answer was lost with the connection.',
    },
  },
  lease_renewed: {
    level: null,
    message: 'leases renewed',
    when: 'Leases that were past their half were made longer.',
    fields: { count: 'How many.' },
  },
  settle_failed: {
    level: 'error',
    message: settleFailedText,
    when: 'What became of messages could not be written.',
    fields: {
      write: 'What was to be written.',
      messages: 'Of how many messages.',
      error: 'Why it could not.',
      delayMs:
        'When it is tried again. 0, of a burial: not any more, it is quarantined now. Null: not any more, and the message is delivered again when its lease ends.',
      queue: 'The queue, where it is about one message.',
      handler: 'The name of the subscription, where it is about one message.',
      id: 'The id, where it is about one message.',
      seq: 'Its place in the table, where it is about one message.',
    },
  },
  follow_on_failed: {
    level: null,
    message: 'a follow-on message was refused: its delivery fails',
    when: 'What a handler published by its context could not be written. Its delivery fails with this error, and that is logged.',
    fields: { ...ofMessage, error },
  },
  drain_timeout: {
    level: 'warn',
    message: 'stopped while handlers still run, or cannot be settled: their messages will be delivered again',
    when: 'A stop no longer waits: handlers did not end in the time that they had, or what they came to cannot be written.',
    fields: {
      stopTimeoutMs: 'The time that they had.',
      messages: 'How many messages are still in hand.',
    },
  },
  listener_lost: {
    level: 'warn',
    message: 'not listening: messages are found by polling until it works',
    when: 'The connection that listens broke, or could not be made. Once, until it is restored.',
    fields: { error: 'Why.', delayMs: 'When it is tried again.' },
  },
  listener_restored: {
    level: 'info',
    message: 'listening again',
    when: 'It listens again.',
    fields: {},
  },
  queue_paused: {
    level: 'warn',
    message: 'queue is paused: nothing of it is delivered until it is resumed',
    when: 'This process has learnt that a queue which it serves is paused. It claims nothing of it, and has given back what it had not started; handlers that run finish.',
    fields: {
      queue: 'The queue.',
      handler: 'The name of the subscription.',
      by: 'Who paused it. Null: the table does not say.',
      at: 'When, by the database’s clock.',
    },
  },
  queue_resumed: {
    level: 'info',
    message: 'queue is resumed',
    when: 'This process has learnt that a queue of which it knew that it was paused is no longer.',
    fields: {
      queue: 'The queue.',
      handler: 'The name of the subscription.',
      by: 'Who resumed it. Null: the table does not say.',
      at: 'When, by the database’s clock. Null: the table does not say.',
    },
  },
  breaker_opened: {
    level: 'error',
    message: 'what became of messages cannot be written: nothing is claimed until it can',
    when: 'What became of messages cannot be written: nothing is claimed until it can.',
    fields: { error: 'Why it cannot.' },
  },
  breaker_closed: {
    level: 'info',
    message: 'what became of messages can be written again',
    when: 'What became of messages can be written again.',
    fields: {},
  },
  claim_failed: {
    level: 'error',
    message: 'database failed, trying again',
    when: 'A claim failed. It is tried again, ever later.',
    fields: { error: 'Why.', delayMs: 'When it is tried again.' },
  },
  warning: {
    level: { of: ({ code }) => warningCatalogue[code].level, says: 'by its code' },
    message: ({ message }) => message,
    when: 'Something is allowed and probably not what you want, or went wrong without harm.',
    fields: {
      code: 'Which warning: see below.',
      message: 'The sentence that is logged.',
      fields: 'The values that it is about: members of their own in the log.',
      error: 'What was thrown, if anything was.',
    },
  },
}

function leaseLostText({ phase, mayHaveLanded }: EventOf<'lease_lost'>): string {
  if (phase === 'running') return 'lease lost while its handler runs: the message is somebody else’s now'
  return mayHaveLanded
    ? 'settled before the connection broke, or lease lost: the message is no longer ours'
    : 'lease lost: the handler outlived it and the message is somebody else’s now'
}

function settleFailedText({ write, delayMs }: EventOf<'settle_failed'>): string {
  if (delayMs === null)
    return 'a settlement cannot be written: the message will be delivered again when its lease ends'
  const isGivenUp = write === 'bury' && delayMs === 0
  return isGivenUp ? 'burying a message failed, it is quarantined now' : 'settling failed, trying again'
}
