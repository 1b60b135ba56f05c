/** The path in the workdir that a request is about, from its URL as it was sent. */
import type { FastifyRequest } from 'fastify'
import type { JailPath } from '../../files/jail-path.ts'
import { jailPathOfUrl } from '../../files/jail-path.ts'

/** `conversations`, the id, and the name of the route. */
const PARTS_BEFORE = 3

export const pathOf = ({ raw }: FastifyRequest): JailPath => jailPathOfUrl(raw.url ?? '', PARTS_BEFORE)
