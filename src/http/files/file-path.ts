/** Extracts the path in the workdir from the request URL. */
import type { FastifyRequest } from 'fastify'
import type { JailPath } from '../../files/jail/jail-path.ts'
import { jailPathOfUrl } from '../../files/jail/jail-path.ts'

/** `conversations`, the id, and the route's name. */
const PARTS_BEFORE = 3

export const pathOf = ({ raw }: FastifyRequest): JailPath => jailPathOfUrl(raw.url ?? '', PARTS_BEFORE)
