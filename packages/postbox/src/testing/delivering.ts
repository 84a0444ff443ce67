import type { Drained } from '../runtime/drain.ts'
import type { MemoryMessage } from './memory/memory-database.ts'

/** How messages get to their handlers: the difference between the modes. */
export interface Delivering {
  begin(): Promise<void>
  /** A publisher has made these visible, and waits. */
  deliver(messages: readonly MemoryMessage[]): Promise<void>
  /** These became visible, and nobody waits. */
  arrived(messages: readonly MemoryMessage[]): void
  /** The clock was moved: delivers what is due by now. */
  arrive(): Promise<void>
  drain(): Promise<Drained>
  /** Never rejects. */
  end(): Promise<void>
}
