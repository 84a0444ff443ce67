import type { SchemaObjects } from './validate-schema-objects.ts'

export interface Mutation {
  /** Of the object that is spoilt: `column outbox.body`. */
  readonly touches: string
  readonly kind: string
  readonly sql: string
  /** What the error must name. */
  readonly object: string
}

export interface InSchema {
  within(name: string): string
  readonly objects: SchemaObjects
}

export type Sql = Readonly<Record<string, string>>

export function each(touches: string, object: string, sql: Sql): Mutation[] {
  return Object.entries(sql).map(([kind, text]) => ({ touches, kind, sql: text, object }))
}
