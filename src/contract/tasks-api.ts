/** How tasks are listed. */
import { z } from 'zod'
import { PageLimit } from './conversation.ts'
import { TaskStatus } from './task.ts'

export const ListTasks = z.strictObject({
  status: TaskStatus.optional(),
  order: z.enum(['asc', 'desc']).default('desc').describe('By creation.'),
  limit: PageLimit,
  page_id: z
    .string()
    .optional()
    .describe('`next_page_id` of the page before. A page may be short and still have a next one.'),
})
export type ListTasks = z.infer<typeof ListTasks>
