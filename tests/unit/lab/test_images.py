from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from typing import TYPE_CHECKING

import pytest

from lab.engines import Engine
from lab.errors import BuildError
from lab.images import IMAGES, Image, build, engine, usual
from lab.images.build import _pack
from lab.images.containerd_root import import_into, prepared, write_archive
from lab.processes import Process
from lab.sandbox import Sandbox

if TYPE_CHECKING:
    from pathlib import Path


def test_a_derived_image_changes_with_its_base(monkeypatch: pytest.MonkeyPatch) -> None:
    before = IMAGES["torch"].key()
    monkeypatch.setitem(IMAGES, "python", Image("python", packages=("python3",)))
    assert IMAGES["torch"].key() != before


@pytest.mark.parametrize(("full", "built"), [("0", ["usual"]), ("1", ["usual", "seldom"])])
def test_an_image_on_demand_is_built_at_full_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str, built: list[str]
) -> None:
    monkeypatch.setenv("TRAINPLANE_LAB_CACHE", str(tmp_path))
    monkeypatch.setenv("FULL", full)
    for name in list(IMAGES):
        monkeypatch.delitem(IMAGES, name)
    for image in (Image("usual"), Image("seldom", on_demand=True)):
        monkeypatch.setitem(IMAGES, image.name, image)
    monkeypatch.setattr(build, "_build", lambda image: image.built().mkdir(parents=True))
    assert list(build.build_missing()) == built
    assert build.build_missing() == {}


def test_nodes_start_without_images_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prepared()
    monkeypatch.setitem(IMAGES, "seldom", Image("seldom", on_demand=True))
    assert prepared() == before
    assert "seldom" not in {image.name for image in usual()}
    assert Image("seldom", on_demand=True).key() == Image("seldom").key()


def test_an_image_that_is_not_built_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINPLANE_LAB_CACHE", str(tmp_path))
    with pytest.raises(BuildError, match="seldom is not built: run `make images FULL=1`"):
        import_into(Sandbox("none", Process(0, -1)), Image("seldom", on_demand=True))


def test_a_layer_marks_what_the_overlay_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/kept").write_text("kept")
    if os.geteuid():
        pytest.skip("a whiteout is a device node: only root may make one")
    os.mknod(root / "etc/gone", 0o020000, os.makedev(0, 0))
    digest = _pack(root, tmp_path / "layer.tar")
    with tarfile.open(tmp_path / "layer.tar") as archive:
        assert sorted(archive.getnames()) == ["etc", "etc/.wh.gone", "etc/kept"]
    assert len(digest) == 64


def test_an_archive_names_its_layers_lowest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINPLANE_LAB_CACHE", str(tmp_path))
    for image in (IMAGES["python"], IMAGES["torch"]):
        image.built().mkdir(parents=True)
        (image.built() / "layer.tar").write_bytes(b"x")
        (image.built() / "layer.sha256").write_text(f"digest-{image.name}")
    sink = io.BytesIO()
    write_archive(IMAGES["torch"], sink)
    sink.seek(0)
    with tarfile.open(fileobj=sink) as archive:
        manifest_file, config_file = archive.extractfile("manifest.json"), archive.extractfile("config.json")
        assert manifest_file is not None
        assert config_file is not None
        (manifest,) = json.load(manifest_file)
        config = json.load(config_file)
    assert manifest["Layers"] == ["digest-python.tar", "digest-torch.tar"]
    assert config["rootfs"]["diff_ids"] == ["sha256:digest-python", "sha256:digest-torch"]
    assert "USE_LIBUV=0" in config["config"]["Env"]


def test_an_engines_image_is_its_program_and_a_user_without_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "kueue"
    program.write_bytes(b"program")
    monkeypatch.setattr(engine, "binary", lambda _: str(program))
    monkeypatch.setattr(Engine, "built", lambda _: tmp_path)
    with tarfile.open(engine.archive("kueue")) as archive:
        names = ("manifest.json", "config.json")
        (manifest,), config = (json.loads((archive.extractfile(name) or io.BytesIO()).read()) for name in names)
        (layer,) = manifest["Layers"]
        packed = (archive.extractfile(layer) or io.BytesIO()).read()
    assert manifest["RepoTags"] == ["lab.trainplane.dev/kueue:1"]
    assert config["config"]["User"] == "65532:65532"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(packed).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        assert files.getnames() == ["manager"]
