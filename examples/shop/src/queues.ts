import { defineQueues } from 'postbox'
import { z } from 'zod'

/**
 * The two queues and what goes through them. Publishing anything else is a compile error, and is refused at run time;
 * what a handler receives was parsed by the same schema.
 */
export const queues = defineQueues({
  orders: {
    body: z.object({ orderId: z.int(), item: z.string() }),
  },
  emails: {
    body: z.object({
      orderId: z.int(),
      to: z.email(),
      about: z.enum(['order', 'coupon', 'shipment', 'reminder']),
      couponCode: z.string().optional(),
    }),
  },
})
