"""Language centering: removes the language component from e5 vectors.

e5 places texts of one language closer together than their meaning is: among experiences in several languages, a
question finds those of its own language first. A language's component is about the same for every text. It was
measured as the mean of the same sentences in English, Vietnamese and Chinese, which
`tests/unit/knowledge/test_language_centering.py` contains, and is subtracted.
"""

from __future__ import annotations

import base64
import re
from functools import cache
from math import sqrt
from typing import TYPE_CHECKING, Final

from shared.search.language_detection import detect_language

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.search.embedding import Vector

_SCALE: Final = 2500
_LETTERS: Final = re.compile(r"[^\W\d_]")
_LATIN: Final = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_COMPONENTS: Final = {
    "en": (
        ";34td@&5Mw=@tVH{P+tG?F{<*`~MF7{|^P#;_v4A|M=7T00|l9_4g6yAMp6sCgAY@@Cp72+zc4u1M>0(>J<9}=nUQc?EvQ+="
        "kf9cA_x%`^91?v8sGTp1Nh|o-vtEq@E9cs8t3Q_4EhZG5d013`2pt+9~$P?1PlolC-?U0A@&Xh_{#<p`~3*(69)Vo3-u8e^y"
        "B;j*8KDi4i4lP3@#W49t-8+`3DK;1``AG2m=uY8|Lr?4)ON%6B73V68;JA2oU!I^%Wlp3>Ev^2lyfE3i}1{6aXLU;N=_e7Z@"
        "h?_4ODX{TTlK-vSc$;S3z`8T$ee2`1$O>G$vc_xk_-{vsX(`{48r-V@~b?bH<n@9+Qo`8F68-0u$V00I^P?esMi0^#~E4-O3"
        "@?(5+O4hax4=I<EZ2<id}<Ms0M@aiAx3=#P)783jL_~q#mAqxTY3H~$r_WSS!5&G@_4h`=C1tsbu@eKd`APg7?A_@x%5C7Z$"
    ),
    "vi": (
        "8O;e61NR#61sDSW`rr-p6BqLk1>OA(<qQ-gFa8Vh<P{1P|NZ(m{1W3C`TGVN+#u-;1o|WWEb;#W_6qsy1?cYt`so$h`W+bq3"
        "H$&N5%|>k7#aB*-31N?=mIJRBJ~~X@#YBr;Oq<t4)qKN{tWCa+!-VN4f^>L0W-<;C;%QH2_^^I6D1Js`~C(B`RN1N78UvG0~"
        "Y%Y1n}(h4(2-D8TQ@=^YZ5v=l$ji@)zXq-1q*-+z90Y<NGrB>&oRD?fVc5@gE-o3LF6g>-!il`yBWT^!e};90dOl`snrl=>6"
        "OO`yKZi^5_mX?I{=j5DDQL=H&D7;m|7Z8u|Y878UgM-U<2w2p;I^`1l(A<Pi4)8Vn&R1=RBPH2n3<Aq5NwCk_1X4H*>=AII<"
        "c`wIT^@#zoD1{drN?iLRI2?jnj*zyAl>Er*{3g-d;1^N2W)cPj`>ksJe`t2S2>nq*(0_+6w;S3Jj2m;>~+5`FX`1|4q4e=uM"
    ),
    "zh": (
        "2NDMj3=HrT6Vm(g3MlCP0NoSz|0MSJ9OdQ+?-LIc9rGjc0{ZRa5BCfJ=@kMF{s1TS4F2Bw_yp-52Llxl5(F0c9}5pD8RP%r5"
        "EBmT%>f(o_2Lfo2^;$m6$bMD{|4V79|O|*1uYEe<`L)p@%RVqEa&(2)a)S_`@t>uu?g(=*5vCT^%3a+3I*~E^br6G-}d$Z2?"
        "q%AClnw5<P72q+}sQF?gKOmAN&yw2-O)L90u?*2ofv$4;9!H0wg5l0SD&?2hr*L0ngv`3GnUr{_N)n0t^fN&-~&CCNuF70qX"
        "w?5byEG5diecGu77&4(kK;0wD|j77FkT{SXrl^Y9G~B-QBp{R1QkEA#>jFdX&z_XXeE0{8ay@D=<<-}&A5?f=jH@dok2(<=n"
        "!7YiW>0S@5;6#DxX3IOr>6$a4RI3(T+3k(VS;0FW|10ozA3;Wpz4f5p~5Et?Q1lu+V@CFVJ8qWv<2lFEC2J!C&=KB=y;}8Q5"
    ),
}
"""Each language's component, in steps of 1/2,500."""


def remove_language(vector: Vector, text: str) -> Vector:
    """Return the vector of `text` without its language component, if the language is known."""
    component = _component(detect_language(text) or ("en" if _is_latin(text) else ""))
    return unit(value - part for value, part in zip(vector, component, strict=True)) if component else vector


def _is_latin(text: str) -> bool:
    """Return True for text such as keywords and code: without a known word, it is closest to English."""
    return len(_LATIN.findall(text)) * 2 > len(_LETTERS.findall(text))


def unit(values: Iterable[float]) -> Vector:
    """Return a unit vector in the direction of `values`."""
    vector = list(values)
    length = sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector


@cache
def _component(language: str) -> tuple[float, ...]:
    steps = base64.b85decode(_COMPONENTS.get(language, ""))
    return tuple((step - 256 if step > 127 else step) / _SCALE for step in steps)
