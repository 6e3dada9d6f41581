"""Words that say nothing about what a question is about."""

from __future__ import annotations

_WORDS = """
a about above after again against all also am an and any are aren't as at be because been before being below
between both but by can can't cannot could couldn't did didn't do does doesn't doing don't done down during each
every few for from further get gets give given gives had has have having he her here hers him his how however i
if in into is isn't it its itself just let like make makes may me might more most much must my mine myself near
need no nor not of off often on once only or other ought our ours out over own please same shall she should
show so some such tell than that the their theirs them then there these they thing things this those through to
too under until up upon us use used uses using very was wasn't way we well were what when where whether which
while who whom whose why will with within without won't would you your yours
der die das und oder ein eine einen ist sind wie wo warum welche welcher welches von zu mit für auf im den
le la les un une des est sont que qui quoi comment pourquoi où de du et ou dans pour avec sur
el los las una es son qué cómo dónde por para con del y o en
"""
STOP_WORDS = frozenset(_WORDS.split())
